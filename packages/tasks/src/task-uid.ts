import { TaskError } from './task-error.js'

/** A uid names a directory or a row: anything else is refused before it is part of a path. */
export function checkedUid(uid: string): string {
  if (!/^[A-Za-z0-9-]{1,64}$/.test(uid)) throw new TaskError('BadRequest', `"${uid.slice(0, 80)}" is not a task uid`)
  return uid
}

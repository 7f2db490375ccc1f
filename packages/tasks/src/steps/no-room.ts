import { type TaskWarning, taskWarning } from '@corral/protocol'
import { shellQuote } from '../repository/shell-quote.js'

interface Place {
  taskName: string
  /** The checkout inside the sandbox. */
  repository: string
  /** Whether the sandbox goes, evicted for what it took of the disk. */
  isGone: boolean
}

/** The warning of a file that found no room, with where the file is; others as they are. */
export function sayingWhere(warning: TaskWarning, { taskName, repository, isGone }: Place): TaskWarning {
  const { code, path } = warning
  if (code !== 'NoRoomLeft' || path === undefined) return warning
  const detail = isGone
    ? 'it is gone with its sandbox, which was evicted for what it took of the disk'
    : `it is in the sandbox, which is kept until the task is deleted: \`corral sandbox cp ${shellQuote(`${taskName}:${repository}/${path}`)} .\``
  return taskWarning(code, { path, detail })
}

import { readFile } from 'node:fs/promises'
import { CorralError } from '@corral/protocol'

export interface ProcessUser {
  readonly uid: number
  readonly gid: number
}

/** Whom a name or number of /etc/passwd stands for; undefined where that is who we are. Only root may be another. */
export async function findUser(user: string | undefined): Promise<ProcessUser | undefined> {
  if (user === undefined) return undefined
  const passwd = await readFile('/etc/passwd', 'utf8').catch(() => '')
  const row = passwd
    .split('\n')
    .map((line) => line.split(':'))
    .find(([name, , uid]) => name === user || uid === user)
  const uid = Number(row?.[2] ?? (/^\d{1,9}$/.test(user) ? user : Number.NaN))
  if (Number.isNaN(uid)) throw new CorralError('Invalid', `there is no user "${user}" in this sandbox`)
  const own = process.getuid?.()
  if (uid === own) return undefined
  if (own !== 0) throw new CorralError('PermissionDenied', `the daemon runs as ${own} and cannot become "${user}"`)
  return { uid, gid: Number(row?.[3] ?? uid) }
}

import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { environmentOf, installCurl, type Person } from '../documents/person.js'

export interface PlainUser extends AsyncDisposable {
  readonly person: Person
}

/** Makes an account without any rights, with a home below `directory`. Answers a reason where that is impossible. */
export function makePlainUser(directory: string): PlainUser | { reason: string } {
  if (process.getuid?.() !== 0) return { reason: 'only root may make an account' }
  const name = `corral-${process.pid}`
  const home = join(directory, 'home of a user')
  const made = spawnSync('useradd', ['--home-dir', home, '--create-home', '--shell', '/bin/bash', name], {
    encoding: 'utf8',
  })
  if (made.status !== 0) return { reason: `useradd: ${made.error?.message ?? made.stderr.trim()}` }
  const number = (flag: string): number => Number(spawnSync('id', [flag, name], { encoding: 'utf8' }).stdout)
  const account = { uid: number('-u'), gid: number('-g') }
  mkdirSync(join(home, 'bin'), { recursive: true })
  installCurl(home)
  spawnSync('chown', ['-R', `${account.uid}:${account.gid}`, home])
  return {
    person: {
      name: 'plain user',
      account,
      home,
      dataDir: join(home, '.corral'),
      env: { ...environmentOf(home, undefined), USER: name, LOGNAME: name },
    },
    async [Symbol.asyncDispose]() {
      const removed = spawnSync('userdel', ['--remove', '--force', name], { encoding: 'utf8' })
      if (removed.status !== 0)
        process.stderr.write(`first hour: the account ${name} is still there: ${removed.stderr}\n`)
    },
  }
}

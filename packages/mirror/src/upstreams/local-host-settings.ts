import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { promisify } from 'node:util'
import { cargoDefaultIndex } from './cargo-default-index.js'
import type { HostSettings } from './host-settings.js'
import { mavenRepository } from './maven-repository.js'

const execute = promisify(execFile)

/** What npm or pip take to tell their settings on a machine with ten times the work it can do. */
const answerMs = 120_000

/** This machine as the user who runs the platform has set it up. */
export function localHostSettings(env: NodeJS.ProcessEnv = process.env): HostSettings {
  return {
    env,
    home: env.HOME ?? homedir(),
    readFile: (path) => readFile(path, 'utf8').catch(() => undefined),
    // From the root directory: a project's own settings (.npmrc, go.env) are not the machine's.
    run: ([program, ...args]) =>
      execute(program, args, { cwd: '/', env, timeout: answerMs, maxBuffer: 1024 * 1024 }).then(
        ({ stdout }) => stdout,
        (error: { killed?: boolean }) => {
          // Too slow is not absent: the caller gets an error and tries again, instead of a setting that is missing.
          if (error.killed) throw new Error(`${program} ${args.join(' ')} did not answer within ${answerMs / 1000} s`)
          return undefined
        },
      ),
    cargoDefaultIndex: () => cargoDefaultIndex(env),
    mavenRepository: () => mavenRepository(env),
  }
}

import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { promisify } from 'node:util'
import { cargoDefaultIndex } from './cargo-default-index.js'
import type { HostSettings } from './host-settings.js'
import { mavenRepository } from './maven-repository.js'

const execute = promisify(execFile)

/** How long npm or pip may take to print their settings; on an overloaded machine that is tens of seconds. */
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
          // A timeout is an error and not a missing setting: the caller tries again instead of using the default registry.
          if (error.killed) throw new Error(`${program} ${args.join(' ')} did not answer within ${answerMs / 1000} s`)
          return undefined
        },
      ),
    cargoDefaultIndex: () => cargoDefaultIndex(env),
    mavenRepository: () => mavenRepository(env),
  }
}

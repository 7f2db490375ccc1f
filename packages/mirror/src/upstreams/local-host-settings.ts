import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { promisify } from 'node:util'
import { cargoDefaultIndex } from './cargo-default-index.js'
import type { HostSettings } from './host-settings.js'

const execute = promisify(execFile)

/** This machine as the user who runs the platform has set it up. */
export function localHostSettings(env: NodeJS.ProcessEnv = process.env): HostSettings {
  return {
    env,
    home: env.HOME ?? homedir(),
    readFile: (path) => readFile(path, 'utf8').catch(() => undefined),
    // From the root directory: a project's own settings (.npmrc, go.env) are not the machine's.
    run: ([program, ...args]) =>
      execute(program, args, { cwd: '/', env, timeout: 30_000, maxBuffer: 1024 * 1024 }).then(
        ({ stdout }) => stdout,
        () => undefined,
      ),
    cargoDefaultIndex: () => cargoDefaultIndex(env),
  }
}

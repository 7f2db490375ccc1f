import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inheritedListener } from './inherited-listener.js'
import {
  type LaunchCommand,
  type LaunchInput,
  nativeLaunchCommand,
  nodeBwrapOptions,
  nodeLaunchCommand,
} from './launch-command.js'

/** The command for a cell with whatever it inherits opened; `release` closes our copies once it runs. */
export async function prepareLaunch(input: LaunchInput): Promise<{ command: LaunchCommand; release: () => void }> {
  if (input.config.supervisor.kind === 'native') return { command: nativeLaunchCommand(input), release: () => {} }
  const listener = await inheritedListener(input.socketDirectory, input.socketName)
  const seccomp = openSync(input.seccompPath, 'r')
  const optionsPath = join(input.socketDirectory, `${input.socketName}.args`)
  // A file rather than arguments: the host's process list shows those to everybody.
  writeFileSync(optionsPath, input.config.tier === 'bubblewrap' ? nul(nodeBwrapOptions(input)) : '', { mode: 0o600 })
  const options = openSync(optionsPath, 'r')
  rmSync(optionsPath)
  return {
    command: nodeLaunchCommand(input, { listen: listener.fd, seccomp, options }),
    release: () => {
      listener.release()
      closeSync(seccomp)
      closeSync(options)
    },
  }
}

function nul(words: readonly string[]): string {
  return words.map((word) => `${word}\0`).join('')
}

import { closeSync } from 'node:fs'
import type { CellStrategy, LaunchInput } from './cell-strategy.js'
import { inheritedListener } from './inherited-listener.js'
import { firstFileFd, type LaunchCommand, nativeLaunchCommand, nodeLaunchCommand } from './launch-command.js'

/** The command for a cell with whatever it inherits opened; `release` closes our copies once it runs. */
export async function prepareLaunch(
  input: LaunchInput,
  strategy: CellStrategy,
): Promise<{ command: LaunchCommand; release: () => void }> {
  const { supervisor } = input
  if (supervisor.kind === 'native')
    return { command: nativeLaunchCommand(input, strategy, supervisor), release: () => {} }
  const listener = await inheritedListener(input.socketDirectory, input.socketName)
  const { argv, files } = strategy.nodeCommand(input, supervisor, firstFileFd)
  return {
    command: nodeLaunchCommand(input, strategy, { listenFd: listener.fd, argv, files }),
    release: () => {
      listener.release()
      for (const fd of files) closeSync(fd)
    },
  }
}

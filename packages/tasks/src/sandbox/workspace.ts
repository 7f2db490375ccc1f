import type { DaemonClient } from '@corral/protocol'
import { TaskError } from '../task-error.js'
import { runCommand } from './run-command.js'

/** Where a task works inside its sandbox. */
export interface Workspace {
  /** The repository's clone: the agent's working directory. */
  repository: string
  /** Bundles, prompt and markers: beside the clone, so nothing of it is ever committed. */
  scratch: string
  /** HOME of the sandbox's user. */
  home: string
}

/** For daemons of an earlier release. */
const findDirectory = `for d in "\${CORRAL_WORKSPACE:-}" /workspace "\${HOME:-}"; do
  if [ -n "$d" ] && [ -d "$d" ] && [ -w "$d" ]; then cd "$d" && pwd && printf '%s\\n' "\${HOME:-$d}" && exit 0; fi
done
exit 1`

const workspaceIn = (directory: string, home: string): Workspace => ({
  repository: `${directory}/repo`,
  scratch: `${directory}/.corral`,
  home,
})

/** Finds the directory the template set aside for work: `CORRAL_WORKSPACE`, `/workspace`, else the home directory. */
export async function findWorkspace(daemon: DaemonClient, taskUid: string, signal: AbortSignal): Promise<Workspace> {
  const known = await daemon.workspace({ signal })
  if (known) return workspaceIn(known.directory, known.home)
  const result = await runCommand(
    daemon,
    `${taskUid}.workspace`,
    { argv: ['/bin/sh', '-c', findDirectory] },
    { signal, isRepeatable: true, timeoutMs: 30_000 },
  )
  const [directory = '', home = directory] = result.stdout.trim().split('\n')
  if (result.exit.exit_code !== 0 || !directory.startsWith('/'))
    throw new TaskError('CloneFailed', 'the sandbox has no writable workspace', {
      hint: 'Give the template an emptyDir volume mounted at /workspace.',
    })
  return workspaceIn(directory, home)
}

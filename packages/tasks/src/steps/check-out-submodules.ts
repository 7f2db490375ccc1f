import { createReadStream } from 'node:fs'
import type { DaemonClient } from '@corral/protocol'
import { identitiesOf } from '../commits/identity.js'
import type { SandboxContext } from '../environment/sandbox-context.js'
import type { PreparedSubmodule } from '../repository/submodules.js'
import { runCommand } from '../sandbox/run-command.js'
import { submoduleScript } from '../sandbox/scripts.js'
import type { Workspace } from '../sandbox/workspace.js'
import { TaskError } from '../task-error.js'

/** Brings submodules into the checkout, parents before what lies in them. A marker per submodule makes a repeat do nothing. */
export async function checkOutSubmodules(
  daemon: DaemonClient,
  { repository, scratch }: Workspace,
  submodules: readonly PreparedSubmodule[],
  { task, signal }: SandboxContext,
): Promise<void> {
  for (const [index, submodule] of submodules.entries()) {
    const [bundle, packIndex] = [`${scratch}/submodule-${index}.bundle`, `${scratch}/submodule-${index}.idx`]
    const marker = `${scratch}/submodule-${index}-${task.metadata.uid}`
    if (await daemon.statFile(marker, { signal })) continue
    await daemon.writeFile(bundle, createReadStream(submodule.bundlePath), { mkdirs: true, signal })
    await daemon.writeFile(packIndex, createReadStream(submodule.pack.indexPath), { signal })
    const { author } = identitiesOf(task)
    const env = submoduleEnvironment(submodule, { repository, bundle, packIndex, marker, author })
    const result = await runCommand(
      daemon,
      `${task.metadata.uid}.submodule-${index}`,
      { argv: ['/bin/sh', '-c', submoduleScript], env },
      { signal, isRepeatable: true, timeoutMs: 10 * 60_000, timeoutCode: 'CloneFailed' },
    )
    if (result.exit.exit_code !== 0)
      throw new TaskError('CloneFailed', `the submodule "${submodule.path}" was not checked out: ${result.tail}`)
  }
}

/** The environment `submoduleScript` runs with. */
export function submoduleEnvironment(
  submodule: PreparedSubmodule,
  place: {
    repository: string
    bundle: string
    packIndex: string
    marker: string
    author: { name: string; email: string }
  },
): Record<string, string> {
  return {
    REPO: place.repository,
    PARENT_PATH: submodule.parentPath,
    NAME: submodule.name,
    MODULE_PATH: submodule.path,
    URL: submodule.url,
    COMMIT: submodule.commit,
    BUNDLE: place.bundle,
    PACK_NAME: submodule.pack.name,
    PACK_OFFSET: String(submodule.pack.offsetBytes),
    PACK_INDEX: place.packIndex,
    AUTHOR_NAME: place.author.name,
    AUTHOR_EMAIL: place.author.email,
    MARKER: place.marker,
  }
}

import { join } from 'node:path'
import type { KubeClient } from '@corral/kube'
import { type Container, imageAnnotation, type Pod } from '@corral/resources'
import type { ImageDirectory } from '../images/image-directory.js'
import { rootedImage } from '../images/rooted-image.js'
import type { BindMount, Cell, Isolation } from '../isolation/isolation.js'
import type { PodFacts } from '../launch/downward-api.js'
import { findImage, type ImageEntry, type ImageMap } from '../launch/image-map.js'
import { LaunchError } from '../launch/launch-error.js'
import { launchPlan, logFile, type PodPaths, type Toolchain, terminationFile } from '../launch/launch-plan.js'
import { ownedFile, removeFile } from '../records/pod-directories.js'
import { isSandboxTier } from '../tiers/pick-isolation.js'
import type { ClaimDirectories } from '../volumes/claim-directories.js'
import { loadConfigSources } from '../volumes/config-sources.js'
import { readyVolumes } from '../volumes/pod-volumes.js'
import { makeSubPaths } from '../volumes/sub-paths.js'

export interface StarterPorts {
  client: KubeClient
  isolation: Isolation
  claims: ClaimDirectories
  images: ImageMap
  /** Images that were imported. */
  imported: Pick<ImageDirectory, 'find'>
  toolchain: Toolchain
  pidsLimit?: number | undefined
  /** Whether another pod runs as that user of the host. */
  isUidInUse(hostUid: number): boolean
}

export interface StartInput {
  pod: Pod
  container: Container
  attempt: number
  paths: PodPaths
  hostUid: number
  facts: PodFacts
  signal: AbortSignal
}

/** Logs of this many runs are kept: the latest and the one before it. */
const keptRuns = 2

/** Reads what the container refers to, makes its volumes and starts it. Throws a `LaunchError` with the waiting reason. */
export async function startContainer(ports: StarterPorts, input: StartInput): Promise<Cell> {
  const { pod, container, attempt, paths, hostUid } = input
  const sources = await loadConfigSources(ports.client, pod, input.signal)
  const directory = join(paths.directory, 'volumes')
  const volumes = await readyVolumes({ ...input, ...ports, sources, directory })
  const image = imageOf(ports, pod, container)
  const { plan, subPaths } = launchPlan({
    ...input,
    image,
    toolchain: ports.toolchain,
    volumes,
    sources,
    pidsLimit: ports.pidsLimit,
  })
  const identities = makeSubPaths(subPaths, hostUid)
  ownedFile(terminationFile(paths, container, attempt), hostUid)
  if (attempt >= keptRuns) removeFile(logFile(paths, container.name, attempt - keptRuns))
  try {
    return await ports.isolation.launch({ ...plan, mounts: plan.mounts.map((mount) => held(mount, identities)) })
  } catch (error) {
    if (error instanceof LaunchError) throw error
    throw new LaunchError('CreateContainerError', error instanceof Error ? error.message : String(error), {
      cause: error,
    })
  }
}

/**
 * What the container runs: what its image stands for here, else an imported one of that name, else the host's tools. With the
 * annotation the root is another image's, and what runs in it stays.
 */
function imageOf(
  { images, imported, isolation }: StarterPorts,
  { metadata }: Pod,
  { image: name = '' }: Container,
): ImageEntry | undefined {
  const known = findImage(images, name)
  const asked = metadata?.annotations?.[imageAnnotation]
  const root = asked ? imported.find(asked) : known ? undefined : imported.find(name)
  if (asked && !root)
    throw new LaunchError(
      'ErrImageNeverPull',
      `the image "${asked}" was not imported here: corral image import ${asked} FILE`,
    )
  if (!root) return known
  if (!isSandboxTier(isolation.tier))
    throw new LaunchError(
      'CreateContainerError',
      `pods of the ${isolation.tier} tier have no root file system of their own`,
    )
  return rootedImage(root, asked ? known : undefined)
}

function held(mount: BindMount, identities: ReadonlyMap<string, string>): BindMount {
  const identity = identities.get(mount.source)
  return identity === undefined ? mount : { ...mount, identity }
}

import { posix } from 'node:path'
import type { Container, Pod } from '@corral/resources'
import type { BindMount, LaunchPlan } from '../isolation/isolation.js'
import { containerLimits } from './amounts.js'
import { type ContainerMounts, containerMounts, type ReadyVolume } from './container-mounts.js'
import type { PodFacts } from './downward-api.js'
import { type ConfigSources, containerEnvironment } from './environment.js'
import { expandVariables } from './expand-variables.js'
import type { ImageEntry } from './image-map.js'
import { LaunchError } from './launch-error.js'
import { innerUser } from './security.js'

/** The tools of this machine as every pod sees them. */
export interface Toolchain {
  mounts: readonly BindMount[]
  /** Directories for PATH, first one first. */
  path: readonly string[]
}

export interface PodPaths {
  directory: string
  home: string
  tmp: string
  logs: string
  /** The pod's own /etc/hosts, where it has aliases. */
  hosts: string
}

export interface LaunchInput {
  pod: Pod
  container: Container
  attempt: number
  image: ImageEntry | undefined
  toolchain: Toolchain
  paths: PodPaths
  volumes: ReadonlyMap<string, ReadyVolume>
  sources: ConfigSources
  facts: PodFacts
  pidsLimit?: number | undefined
}

/** Where HOME lies inside every pod. */
export const homeDirectory = '/home/agent'
/**
 * Without the last two these programs would not be found: where Go's own installation goes, and where programs go that package managers
 * install for one user.
 */
const systemPath = [
  ...['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'],
  ...['/usr/local/go/bin', `${homeDirectory}/.local/bin`],
]
const defaultTerminationPath = '/dev/termination-log'

/** The launch and the directories below volumes it needs. Pure; throws a `LaunchError` that becomes the waiting reason. */
export function launchPlan(input: LaunchInput): { plan: LaunchPlan; subPaths: ContainerMounts['subPaths'] } {
  const { pod, container, attempt, image, paths } = input
  const { uid, gid } = innerUser(pod, container)
  const env = containerEnvironment({ ...input, base: baseEnvironment(input) })
  const expand = (text: string): string => expandVariables(text, env)
  const own = containerMounts(container, input.volumes, expand)
  const podUid = pod.metadata?.uid ?? ''
  const plan: LaunchPlan = {
    podUid,
    container: container.name,
    attempt,
    argv: containerArgv(container, image, expand),
    env,
    workingDir: container.workingDir ?? image?.workingDir ?? homeDirectory,
    uid,
    gid,
    mounts: withoutShadowed(
      [
        // An image brings its own /usr; of the host it has what the platform itself runs on.
        ...input.toolchain.mounts.filter(({ target }) => image?.root === undefined || target !== '/usr'),
        ...(image?.mounts ?? []),
        { source: paths.home, target: homeDirectory, readOnly: false },
        { source: paths.tmp, target: '/tmp', readOnly: false },
        ...(hasAliases(pod) ? [{ source: paths.hosts, target: '/etc/hosts', readOnly: true }] : []),
        { source: terminationFile(paths, container, attempt), target: terminationPath(container), readOnly: false },
      ],
      own,
    ),
    tmpfs: own.tmpfs,
    ...(image?.root === undefined ? {} : { root: image.root }),
    readOnlyRoot: container.securityContext?.readOnlyRootFilesystem ?? false,
    limits: containerLimits(container, input.pidsLimit),
    stdin: container.stdin ?? false,
    tty: container.tty ?? false,
    logPath: logFile(paths, container.name, attempt),
  }
  return { plan, subPaths: own.subPaths }
}

/** The file that holds the output of one run. */
export function logFile(paths: PodPaths, container: string, attempt: number): string {
  return posix.join(paths.logs, container, `${attempt}.log`)
}

/** The host's side of `terminationMessagePath` for one run. */
export function terminationFile(paths: PodPaths, container: Container, attempt: number): string {
  return posix.join(paths.directory, 'termination', `${container.name}.${attempt}`)
}

function terminationPath(container: Container): string {
  return posix.resolve('/', container.terminationMessagePath ?? defaultTerminationPath)
}

function containerArgv(
  container: Container,
  image: ImageEntry | undefined,
  expand: (text: string) => string,
): string[] {
  const command = container.command?.length ? container.command.map(expand) : [...(image?.argv ?? [])]
  if (command.length === 0) {
    const hint = 'images are the tools of this machine, so the container needs a command'
    throw new LaunchError('CreateContainerConfigError', `no command specified for image "${container.image}": ${hint}`)
  }
  return [...command, ...(container.args ?? []).map(expand)]
}

function baseEnvironment({ pod, container, image, toolchain }: LaunchInput): Record<string, string> {
  return {
    PATH: [...toolchain.path, ...systemPath].join(':'),
    HOME: homeDirectory,
    HOSTNAME: podHostname(pod),
    // Without it programs take file names for ASCII: Java cannot open `é.txt`, Ruby refuses it, ls shows escapes.
    LANG: 'C.UTF-8',
    ...(container.tty ? { TERM: 'xterm' } : {}),
    ...image?.env,
  }
}

/** The name the pod has for itself. */
export function podHostname(pod: Pod): string {
  return pod.spec?.hostnameOverride ?? pod.spec?.hostname ?? pod.metadata?.name ?? ''
}

export function hasAliases(pod: Pod): boolean {
  return (pod.spec?.hostAliases ?? []).length > 0
}

/** `/etc/hosts` of a pod with aliases. */
export function hostsFile(pod: Pod, podIP: string): string {
  const own = ['127.0.0.1 localhost', '::1 localhost ip6-localhost ip6-loopback', `${podIP} ${podHostname(pod)}`]
  const aliases = (pod.spec?.hostAliases ?? []).map(({ ip, hostnames }) => [ip, ...(hostnames ?? [])].join(' '))
  return `${[...own, ...aliases].join('\n')}\n`
}

/** A volume mounted over one of the pod's standard directories takes its place. */
function withoutShadowed(standard: BindMount[], own: ContainerMounts): BindMount[] {
  const taken = new Set([...own.mounts, ...own.tmpfs].map((mount) => mount.target))
  return [...standard.filter((mount) => !taken.has(mount.target)), ...own.mounts]
}

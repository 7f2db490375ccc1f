import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { posix } from 'node:path'
import { SandboxError, toSandboxError } from '../sandbox-error.js'
import type { SandboxHandle } from '../sandbox-handle.js'
import type { InstanceConfig, InstanceVolumeMount } from './sandbox-provider.js'

/** Where a sandbox of a provider works. */
export const workspacePath = '/workspace'

/** A path of this machine whose content the sandbox is given. */
export interface InstanceSource {
  readonly local: string
  readonly inside: string
  readonly isDirectory: boolean
  /** Its permissions, in octal. */
  readonly mode: string
}

/** Refuses mounts that cannot be, by their words alone. */
export function checkMounts({ projectPath, volumeMounts = [] }: InstanceConfig): void {
  if (projectPath !== undefined) checkPath('projectPath', projectPath)
  if (!Array.isArray(volumeMounts)) throw new SandboxError('Invalid', 'volumeMounts must be an array')
  const taken = new Set([workspacePath])
  for (const mount of volumeMounts as readonly (InstanceVolumeMount | undefined)[]) {
    const { hostPath, containerPath, readonly } = mount ?? ({} as Partial<InstanceVolumeMount>)
    checkPath('hostPath', hostPath)
    checkPath('containerPath', containerPath)
    const inside = posix.resolve(containerPath)
    if (inside === '/') throw new SandboxError('Invalid', 'containerPath must be below the root directory')
    if (taken.has(inside)) throw new SandboxError('Invalid', `"${inside}" is the containerPath of another mount`)
    taken.add(inside)
    if (readonly === true) continue
    throw new SandboxError('Unsupported', `volumeMounts: "${hostPath}" cannot be written to from inside a sandbox`, {
      hint: 'Say readonly: true to give the sandbox a copy, and fetch results with files.downloadDirectory.',
      details: { hostPath, containerPath },
    })
  }
}

/** What the sandbox is to be given, as it lies on this machine now. */
export async function sourcesOf({ projectPath, volumeMounts = [] }: InstanceConfig): Promise<InstanceSource[]> {
  const project = projectPath === undefined ? [] : [{ local: projectPath, inside: workspacePath }]
  const mounts = volumeMounts.map(({ hostPath, containerPath }) => ({
    local: hostPath,
    inside: posix.resolve(containerPath),
  }))
  const sources: InstanceSource[] = []
  for (const source of [...project, ...mounts]) {
    const found = await stat(source.local).catch((error: unknown) => {
      throw toSandboxError(error)
    })
    const isDirectory = found.isDirectory()
    if (!isDirectory && source.inside === workspacePath)
      throw new SandboxError('NotADirectory', `projectPath "${source.local}" is not a directory`)
    // A pipe would be waited for, and a device has no end.
    if (!isDirectory && !found.isFile())
      throw new SandboxError('Invalid', `"${source.local}" is neither a file nor a directory`)
    sources.push({ ...source, isDirectory, mode: `0${(found.mode & 0o777).toString(8)}` })
  }
  return sources
}

export interface PodVolumes {
  readonly volumes: { name: string; emptyDir: Record<string, never> }[]
  readonly volumeMounts: { name: string; mountPath: string }[]
}

/** The volumes of a pod: the workspace, and a place for each directory that comes from here. */
export function volumesFor(sources: readonly InstanceSource[]): PodVolumes {
  const others = sources.filter(({ inside, isDirectory }) => isDirectory && inside !== workspacePath)
  const paths = [workspacePath, ...others.map(({ inside }) => inside)]
  const named = paths.map((mountPath, index) => ({ name: index === 0 ? 'workspace' : `mount-${index}`, mountPath }))
  return { volumes: named.map(({ name }) => ({ name, emptyDir: {} })), volumeMounts: named }
}

/** Copies the content into the sandbox. */
export async function deliver(
  sources: readonly InstanceSource[],
  { files }: SandboxHandle,
  call: { signal?: AbortSignal },
): Promise<void> {
  for (const { local, inside, isDirectory, mode } of sources) {
    if (isDirectory) await files.uploadDirectory(local, inside, call)
    else await files.write(inside, createReadStream(local) as AsyncIterable<Uint8Array>, { ...call, mode })
  }
}

function checkPath(what: string, path: unknown): asserts path is string {
  if (typeof path !== 'string' || !path.startsWith('/') || path.includes('\0'))
    throw new SandboxError('Invalid', `${what} must be an absolute path`)
}

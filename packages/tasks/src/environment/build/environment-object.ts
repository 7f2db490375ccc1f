import { createHash } from 'node:crypto'
import type { KubeClient } from '@corral/kube'
import {
  type Environment,
  type EnvironmentSpec,
  Environments,
  isAlreadyExists,
  isConflict,
  type Stored,
} from '@corral/resources'

/** What makes two environments the same. */
export type EnvironmentIdentity = Omit<EnvironmentSpec, 'build'>

/**
 * The name of the environment of a branch of a repository. The branch is part of it: what was built from a branch that an agent
 * may have written is found by tasks on that branch alone. Pure.
 */
export function environmentName(identity: EnvironmentIdentity): string {
  const { repository, ref = '', part = '', file = '', sandbox = {} } = identity
  const parts = [
    ...[repository.url, repository.submodules ?? 'none', String(repository.lfs ?? false)],
    ...[ref, part, file, sandbox.pool ?? '', sandbox.template ?? ''],
  ]
  const hash = createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 10)
  const last = repository.url.replace(/\/+$/, '').replace(/\.git$/, '')
  return `${slug(last.slice(last.lastIndexOf('/') + 1), 24) || 'repository'}-${hash}`
}

function slug(text: string, length: number): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, length)
    .replace(/^-+|-+$/g, '')
}

/** The environment, made where there is none yet. */
export async function ensureEnvironment(
  client: Pick<KubeClient, 'find' | 'create' | 'get'>,
  namespace: string,
  identity: EnvironmentIdentity,
  build?: EnvironmentSpec['build'],
): Promise<Stored<Environment>> {
  const name = environmentName(identity)
  const found = await client.find(Environments, { namespace, name })
  if (found) return found
  try {
    return await client.create(Environments, {
      apiVersion: 'corral.dev/v1alpha1',
      kind: 'Environment',
      metadata: { name, namespace },
      spec: { ...identity, ...(build ? { build } : {}) },
    })
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
    return client.get(Environments, { namespace, name })
  }
}

/**
 * Asks for a build. Where one is asked for already and has not begun, nothing happens: it will be of the same branch. False
 * where the object changed since it was read: another's request may have begun meanwhile, and two requests make two builds.
 */
export async function requestBuild(
  client: Pick<KubeClient, 'patch'>,
  { metadata, spec, status }: Stored<Environment>,
  build: NonNullable<EnvironmentSpec['build']>,
): Promise<boolean> {
  const isWaiting = spec.build !== undefined && spec.build.request !== status?.build?.request
  if (spec.build?.request === build.request || (isWaiting && !build.noCache)) return true
  const { namespace = 'default', name, resourceVersion } = metadata
  const body = { metadata: { resourceVersion }, spec: { build: { noCache: null, ...build } } }
  try {
    await client.patch(Environments, { namespace, name }, { type: 'merge', body })
    return true
  } catch (error) {
    if (!isConflict(error)) throw error
    return false
  }
}

export function isBuilding({ status }: Pick<Environment, 'status'>): boolean {
  return status?.build?.state === 'Starting' || status?.build?.state === 'Running'
}

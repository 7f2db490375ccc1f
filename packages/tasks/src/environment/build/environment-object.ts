import { createHash } from 'node:crypto'
import type { KubeClient } from '@corral/kube'
import { type Environment, type EnvironmentSpec, Environments, isAlreadyExists, type Stored } from '@corral/resources'

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

/** Asks for a build. Where one for the same request was made or runs, nothing happens. */
export async function requestBuild(
  client: Pick<KubeClient, 'patch'>,
  { metadata, spec }: Stored<Environment>,
  build: NonNullable<EnvironmentSpec['build']>,
): Promise<void> {
  if (spec.build?.request === build.request) return
  const { namespace = 'default', name } = metadata
  await client.patch(
    Environments,
    { namespace, name },
    { type: 'merge', body: { spec: { build: { noCache: null, ...build } } } },
  )
}

export function isBuilding({ status }: Pick<Environment, 'status'>): boolean {
  return status?.build?.state === 'Starting' || status?.build?.state === 'Running'
}

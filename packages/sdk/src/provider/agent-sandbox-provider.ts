import { createHash, randomBytes } from 'node:crypto'
import type { KubeClient } from '@corral/kube'
import { NetworkPolicies, Nodes, type Sandbox, type Stored } from '@corral/resources'
import { AgentSandboxClient, type AgentSandboxClientOptions } from '../agent-sandbox-client.js'
import { SandboxError } from '../sandbox-error.js'
import { podNameOf } from '../sandbox-object.js'
import { statusOf } from '../sandbox-status.js'
import { AgentSandboxInstance } from './agent-sandbox-instance.js'
import type {
  InstanceConfig,
  InstanceStatus,
  ProviderEvent,
  ProviderEventType,
  ProviderHealth,
  SandboxProvider,
} from './sandbox-provider.js'

export interface AgentSandboxProviderOptions extends AgentSandboxClientOptions {
  /** `kubernetes` without it; `embedded` for the API of `corral up`. */
  readonly name?: string
  readonly image?: string
  readonly runtimeClassName?: string
  readonly readyTimeoutMs?: number
}

const idLabel = 'corral.dev/sandbox-id'
const projectLabel = 'corral.dev/project-hash'
const projectAnnotation = 'corral.dev/project-id'
const idleAnnotation = 'corral.dev/idle-timeout-minutes'
const defaults = { image: 'corral/daemon', memoryMb: 4096, cpuCores: 2, idleTimeoutMinutes: 30 }
const limits = { memoryMb: 32_768, cpuCores: 16 }

/** Sandboxes of one cluster, one per project. Several providers live side by side; each has its own client. */
export class AgentSandboxProvider implements SandboxProvider {
  readonly name: string
  readonly #options: AgentSandboxProviderOptions
  readonly #client: AgentSandboxClient
  readonly #listeners = new Set<(event: ProviderEvent) => void>()
  readonly #creating = new Map<string, Promise<AgentSandboxInstance>>()

  constructor(options: AgentSandboxProviderOptions = {}) {
    this.name = options.name ?? 'kubernetes'
    this.#options = options
    this.#client = new AgentSandboxClient(options)
  }

  /** A second one for a project that has one is `AlreadyExists`, also when both are asked for at once. */
  create(config: InstanceConfig, options: { signal?: AbortSignal } = {}): Promise<AgentSandboxInstance> {
    if (!config?.projectId) return Promise.reject(new SandboxError('Invalid', 'projectId must not be empty'))
    const { projectId } = config
    if (this.#creating.has(projectId)) return Promise.reject(taken(projectId))
    const creating = this.#create(config, options).finally(() => this.#creating.delete(projectId))
    this.#creating.set(projectId, creating)
    return creating
  }

  async get(projectId: string): Promise<AgentSandboxInstance | undefined> {
    return this.#first(`${projectLabel}=${hash(projectId)}`)
  }

  async getById(id: string): Promise<AgentSandboxInstance | undefined> {
    return /^[a-z0-9-]{1,63}$/.test(id) ? this.#first(`${idLabel}=${id}`) : undefined
  }

  async list(): Promise<AgentSandboxInstance[]> {
    const instances: AgentSandboxInstance[] = []
    for await (const object of this.#client.sandboxes.list({ labelSelector: idLabel })) {
      if (!object.metadata.deletionTimestamp) instances.push(await this.#instance(object))
    }
    return instances
  }

  async recover(): Promise<{ recovered: number; removed: number }> {
    let recovered = 0
    let removed = 0
    for await (const object of this.#client.sandboxes.list({ labelSelector: idLabel })) {
      const status = instanceStatus(object)
      if (status === 'stopped' || status === 'error') {
        await this.#remove(object)
        removed += 1
      } else recovered += 1
    }
    return { recovered, removed }
  }

  /** Nodes pull images when a pod needs them; an image that cannot be named is refused. */
  async pullImage(image: string): Promise<void> {
    if (!/^\S+$/.test(image)) throw new SandboxError('Invalid', `"${image}" is not the name of an image`)
  }

  /** Whether a node has it already. */
  /** Whether a node has it. A node of the platform's own has every image: it stands for what the machine has. */
  async isImageAvailable(image: string): Promise<boolean> {
    const kube = await this.#client.kube()
    for await (const node of kube.items(Nodes)) {
      if (node.status?.nodeInfo?.containerRuntimeVersion?.startsWith('corral-')) return true
      if (
        node.status?.images?.some(({ names }) => names?.some((name) => name === image || name.startsWith(`${image}@`)))
      ) {
        return true
      }
    }
    return false
  }

  async healthCheck(): Promise<ProviderHealth> {
    const health = await this.#client.healthCheck()
    const message = health.healthy
      ? `${this.name} is ready`
      : (health.error ??
        (health.crdRegistered
          ? `namespace "${health.namespace}" is missing`
          : 'the Agent Sandbox kinds are not served'))
    return { healthy: health.healthy, message, details: { ...health } }
  }

  async cleanup(filter: { olderThan?: Date; status?: InstanceStatus } = {}): Promise<number> {
    let count = 0
    for await (const object of this.#client.sandboxes.list({ labelSelector: idLabel })) {
      const isOld = !filter.olderThan || Date.parse(object.metadata.creationTimestamp) < filter.olderThan.getTime()
      if (!isOld || (filter.status && instanceStatus(object) !== filter.status)) continue
      await this.#remove(object)
      count += 1
    }
    return count
  }

  on(listener: (event: ProviderEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => this.off(listener)
  }

  off(listener: (event: ProviderEvent) => void): void {
    this.#listeners.delete(listener)
  }

  /** Claims, pools, templates and connections of the same cluster, for what one sandbox per project does not cover. */
  get client(): AgentSandboxClient {
    return this.#client
  }

  /** The Kubernetes client beneath. */
  kube(): Promise<KubeClient> {
    return this.#client.kube()
  }

  close(): Promise<void> {
    return this.#client.close()
  }

  async #create(config: InstanceConfig, options: { signal?: AbortSignal }): Promise<AgentSandboxInstance> {
    const { projectId, idleTimeoutMinutes = defaults.idleTimeoutMinutes } = config
    const id = config.id ?? `s-${randomBytes(6).toString('hex')}`
    checkConfig(config, id)
    if (await this.get(projectId)) throw taken(projectId)
    const tell = (type: ProviderEventType, error?: unknown) => this.#tell({ type, sandboxId: id, projectId, error })
    // The name is the project's, so that of two programs that create at once one is refused by the API.
    const name = `corral-${hash(projectId)}`
    tell('sandbox:creating')
    try {
      if (config.networkMode === 'none') await this.#isolate(name, id)
      const handle = await this.#client.sandboxes.create({
        name,
        podTemplate: this.#podTemplate(config, id),
        labels: { [idLabel]: id, [projectLabel]: hash(projectId) },
        annotations: { [projectAnnotation]: projectId, [idleAnnotation]: String(idleTimeoutMinutes) },
        ttlMs: idleTimeoutMinutes * 60_000,
        ...(config.env ? { env: config.env } : {}),
        ...(this.#options.readyTimeoutMs ? { timeoutMs: this.#options.readyTimeoutMs } : {}),
        ...(options.signal ? { signal: options.signal } : {}),
      })
      tell('sandbox:created')
      const object = await handle.object()
      handle.detach()
      tell('sandbox:started')
      return await this.#instance(object)
    } catch (error) {
      tell('sandbox:error', error)
      // A name that is taken has a policy of its own; otherwise what was made for the failed one goes.
      if (!(error instanceof SandboxError && error.code === 'AlreadyExists')) await this.#open(name).catch(() => {})
      throw error
    }
  }

  /** Closes the network of a sandbox before it exists, so that it never had one. */
  async #isolate(name: string, id: string): Promise<void> {
    const kube = await this.#client.kube()
    const metadata = { name: `np-${name}`, namespace: this.#options.namespace ?? kube.defaultNamespace }
    const spec = { podSelector: { matchLabels: { [idLabel]: id } }, policyTypes: ['Ingress', 'Egress'] }
    await kube.apply(NetworkPolicies, { metadata, spec }, { fieldManager: 'corral-provider', force: true })
  }

  async #open(name: string): Promise<void> {
    const kube = await this.#client.kube()
    const ref = { name: `np-${name}`, namespace: this.#options.namespace ?? kube.defaultNamespace }
    if (await kube.find(NetworkPolicies, ref)) await kube.delete(NetworkPolicies, ref)
  }

  #podTemplate(config: InstanceConfig, id: string) {
    const { memoryMb = defaults.memoryMb, cpuCores = defaults.cpuCores, networkMode = 'bridge' } = config
    const { runtimeClassName } = this.#options
    const limitsOf = { memory: `${memoryMb}Mi`, cpu: String(cpuCores) }
    return {
      metadata: { labels: { 'corral.dev/network': networkMode, [idLabel]: id } },
      spec: {
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        ...(runtimeClassName ? { runtimeClassName } : {}),
        containers: [
          {
            name: 'sandbox',
            image: config.image ?? this.#options.image ?? defaults.image,
            ports: [{ name: 'daemon', containerPort: 8888, protocol: 'TCP' as const }],
            resources: { limits: limitsOf, requests: { cpu: '100m' } },
            readinessProbe: { httpGet: { path: '/healthz', port: 8888 }, periodSeconds: 1, timeoutSeconds: 5 },
            volumeMounts: [{ name: 'workspace', mountPath: '/workspace' }],
          },
        ],
        volumes: [{ name: 'workspace', emptyDir: {} }],
      },
    }
  }

  async #first(labelSelector: string): Promise<AgentSandboxInstance | undefined> {
    for await (const object of this.#client.sandboxes.list({ labelSelector })) {
      if (!object.metadata.deletionTimestamp) return this.#instance(object)
    }
    return undefined
  }

  async #instance(object: Stored<Sandbox>): Promise<AgentSandboxInstance> {
    const { labels = {}, annotations = {}, name } = object.metadata
    const minutes = Number(annotations[idleAnnotation])
    const handle = await this.#client.sandboxes.get(name)
    return new AgentSandboxInstance(handle, {
      id: labels[idLabel] ?? name,
      projectId: annotations[projectAnnotation] ?? '',
      status: instanceStatus(object),
      idleTimeoutMinutes: Number.isFinite(minutes) && minutes > 0 ? minutes : undefined,
      stop: async () => {
        await this.#remove(object)
        handle.detach()
      },
    })
  }

  async #remove(object: Stored<Sandbox>): Promise<void> {
    const { labels = {}, annotations = {}, name } = object.metadata
    const about = { sandboxId: labels[idLabel] ?? name, projectId: annotations[projectAnnotation] ?? '' }
    this.#tell({ type: 'sandbox:stopping', ...about })
    await this.#client.sandboxes.delete(name)
    await this.#open(name)
    this.#tell({ type: 'sandbox:stopped', ...about })
  }

  #tell(event: ProviderEvent): void {
    for (const listener of this.#listeners) listener(event)
  }
}

/** A provider by the name of its type, as settings spell it; `agent-sandbox` is any cluster with the Agent Sandbox API. */
export function createProvider(type: string, options: AgentSandboxProviderOptions = {}): AgentSandboxProvider {
  if (type !== 'agent-sandbox' && type !== 'kubernetes' && type !== 'embedded') {
    throw new SandboxError('Invalid', `there is no provider "${type}": use embedded, kubernetes or agent-sandbox`)
  }
  return new AgentSandboxProvider({ name: type === 'agent-sandbox' ? 'kubernetes' : type, ...options })
}

function instanceStatus(object: Stored<Sandbox>): InstanceStatus {
  switch (statusOf(object, podNameOf(object)).phase) {
    case 'Running':
      return 'running'
    case 'Suspended':
    case 'Suspending':
      return 'idle'
    case 'Pending':
    case 'Resuming':
      return 'creating'
    case 'Deleting':
      return 'stopping'
    case 'Finished':
      return 'stopped'
    case 'Failed':
      return object.status?.conditions?.some(({ reason }) => reason === 'SandboxExpired') ? 'stopped' : 'error'
  }
}

function checkConfig(config: InstanceConfig, id: string): void {
  const { memoryMb = 1, cpuCores = 1, idleTimeoutMinutes = 1, projectId } = config
  if (!projectId) throw new SandboxError('Invalid', 'projectId must not be empty')
  if (!/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(id)) throw new SandboxError('Invalid', `"${id}" is not an id`)
  if (!(memoryMb > 0 && memoryMb <= limits.memoryMb)) {
    throw new SandboxError('Invalid', `memoryMb must lie between 1 and ${limits.memoryMb}`)
  }
  if (!(cpuCores > 0 && cpuCores <= limits.cpuCores)) {
    throw new SandboxError('Invalid', `cpuCores must lie between 0 and ${limits.cpuCores}`)
  }
  if (!(idleTimeoutMinutes > 0)) throw new SandboxError('Invalid', 'idleTimeoutMinutes must be positive')
}

function taken(projectId: string): SandboxError {
  return new SandboxError('AlreadyExists', `project "${projectId}" has a sandbox already`)
}

/** A project's id as a label value and a part of a name. */
function hash(projectId: string): string {
  return createHash('sha256').update(projectId).digest('hex').slice(0, 20)
}

import { createHash, randomBytes } from 'node:crypto'
import type { KubeClient } from '@corral/kube'
import { isNotFound, NetworkPolicies, Nodes, quantityToNumber, type Sandbox, type Stored } from '@corral/resources'
import { AgentSandboxClient, type AgentSandboxClientOptions } from '../agent-sandbox-client.js'
import { SandboxError, toSandboxError, translated } from '../sandbox-error.js'
import { podNameOf } from '../sandbox-object.js'
import { statusOf } from '../sandbox-status.js'
import { AgentSandboxInstance } from './agent-sandbox-instance.js'
import { checkConfig, checkFilter, checkImage, checkProject, instanceDefaults } from './instance-config.js'
import { deliver, type PodVolumes, sourcesOf, volumesFor } from './instance-sources.js'
import { isSameImage } from './node-images.js'
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
  async create(config: InstanceConfig, options: { signal?: AbortSignal } = {}): Promise<AgentSandboxInstance> {
    checkConfig(config)
    const { projectId } = config
    if (this.#creating.has(projectId)) throw taken(projectId)
    const creating = this.#create(config, options).finally(() => this.#creating.delete(projectId))
    this.#creating.set(projectId, creating)
    return creating
  }

  async get(projectId: string): Promise<AgentSandboxInstance | undefined> {
    checkProject(projectId)
    return this.#first(`${projectLabel}=${hash(projectId)}`)
  }

  async getById(id: string): Promise<AgentSandboxInstance | undefined> {
    return /^[a-z0-9-]{1,63}$/.test(id) ? this.#first(`${idLabel}=${id}`) : undefined
  }

  async list(): Promise<AgentSandboxInstance[]> {
    const instances: AgentSandboxInstance[] = []
    for await (const object of this.#client.sandboxes.list({ labelSelector: idLabel })) {
      if (!object.metadata.deletionTimestamp) instances.push(this.#instance(object))
    }
    return instances
  }

  async recover(): Promise<{ recovered: number; removed: number }> {
    let recovered = 0
    let removed = 0
    for await (const object of this.#client.sandboxes.list({ labelSelector: idLabel })) {
      const status = instanceStatus(object)
      if (status === 'stopping') continue
      if (status === 'stopped' || status === 'error') {
        await this.#remove(object)
        removed += 1
      } else recovered += 1
    }
    return { recovered, removed }
  }

  /** Nodes pull images when a pod needs them; an image that cannot be named is refused. */
  async pullImage(image: string): Promise<void> {
    checkImage(image)
  }

  /** Whether a node has it. A node of the platform's own has every image: it stands for what the machine has. */
  async isImageAvailable(image: string): Promise<boolean> {
    checkImage(image)
    const kube = await this.#client.kube()
    return translated(async () => {
      for await (const { status } of kube.items(Nodes)) {
        if (status?.nodeInfo?.containerRuntimeVersion?.startsWith('corral-')) return true
        if (status?.images?.some(({ names }) => names?.some((name) => isSameImage(name, image)))) return true
      }
      return false
    })
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
    checkFilter(filter)
    let count = 0
    for await (const object of this.#client.sandboxes.list({ labelSelector: idLabel })) {
      const isOld = !filter.olderThan || Date.parse(object.metadata.creationTimestamp) < filter.olderThan.getTime()
      const status = instanceStatus(object)
      // What goes already is not removed a second time.
      if (!isOld || status === 'stopping' || (filter.status && status !== filter.status)) continue
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
    const { projectId, idleTimeoutMinutes = instanceDefaults.idleTimeoutMinutes } = config
    const id = config.id ?? `s-${randomBytes(6).toString('hex')}`
    const sources = await sourcesOf(config)
    if (await this.get(projectId)) throw taken(projectId)
    const other = config.id === undefined ? undefined : await this.getById(id)
    if (other) throw new SandboxError('AlreadyExists', `id "${id}" is that of project "${other.projectId}"`)
    const tell = (type: ProviderEventType, error?: unknown) => this.#tell({ type, sandboxId: id, projectId, error })
    // The name is the project's, so that of two programs that create at once one is refused by the API.
    const name = `corral-${hash(projectId)}`
    tell('sandbox:creating')
    try {
      if (config.networkMode === 'none') await this.#isolate(name, id)
      await using made = await this.#client.sandboxes.create({
        name,
        podTemplate: this.#podTemplate(config, id, volumesFor(sources)),
        labels: { [idLabel]: id, [projectLabel]: hash(projectId) },
        annotations: { [projectAnnotation]: projectId, [idleAnnotation]: String(idleTimeoutMinutes) },
        ttlMs: idleTimeoutMinutes * 60_000,
        ...(config.env ? { env: config.env } : {}),
        ...(this.#options.readyTimeoutMs ? { timeoutMs: this.#options.readyTimeoutMs } : {}),
        ...(options.signal ? { signal: options.signal } : {}),
      })
      tell('sandbox:created')
      await deliver(sources, made, options)
      const object = await made.object()
      made.detach()
      tell('sandbox:started')
      return this.#instance(object)
    } catch (error) {
      tell('sandbox:error', error)
      if (config.networkMode === 'none') await this.#open(name, id).catch(() => {})
      throw toSandboxError(error, options.signal)
    }
  }

  /**
   * Closes the network of a sandbox before it exists, so that it never had one. The policy has the sandbox's id in its name:
   * of two programs that create at once, the one that is refused must not move the policy of the other.
   */
  async #isolate(name: string, id: string): Promise<void> {
    const kube = await this.#client.kube()
    const spec = { podSelector: { matchLabels: { [idLabel]: id } }, policyTypes: ['Ingress', 'Egress'] }
    const metadata = await this.#policy(name, id)
    await kube.apply(NetworkPolicies, { metadata, spec }, { fieldManager: 'corral-provider', force: true })
  }

  async #open(name: string, id: string): Promise<void> {
    const kube = await this.#client.kube()
    const ref = await this.#policy(name, id)
    try {
      if (await kube.find(NetworkPolicies, ref)) await kube.delete(NetworkPolicies, ref)
    } catch (error) {
      if (!isNotFound(error)) throw toSandboxError(error)
    }
  }

  async #policy(name: string, id: string): Promise<{ name: string; namespace: string }> {
    const namespace = this.#options.namespace ?? (await this.#client.kube()).defaultNamespace
    return { name: `np-${name}-${id}`, namespace }
  }

  #podTemplate(config: InstanceConfig, id: string, { volumes, volumeMounts }: PodVolumes) {
    const {
      memoryMb = instanceDefaults.memoryMb,
      cpuCores = instanceDefaults.cpuCores,
      networkMode = 'bridge',
    } = config
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
            image: config.image ?? this.#options.image ?? instanceDefaults.image,
            ports: [{ name: 'daemon', containerPort: 8888, protocol: 'TCP' as const }],
            resources: { limits: limitsOf, requests: { cpu: '100m' } },
            readinessProbe: { httpGet: { path: '/healthz', port: 8888 }, periodSeconds: 1, timeoutSeconds: 5 },
            volumeMounts,
          },
        ],
        volumes,
      },
    }
  }

  async #first(labelSelector: string): Promise<AgentSandboxInstance | undefined> {
    for await (const object of this.#client.sandboxes.list({ labelSelector })) {
      if (!object.metadata.deletionTimestamp) return this.#instance(object)
    }
    return undefined
  }

  #instance(object: Stored<Sandbox>): AgentSandboxInstance {
    const { labels = {}, annotations = {}, name } = object.metadata
    const minutes = Number(annotations[idleAnnotation])
    const memory = object.spec.podTemplate.spec.containers[0]?.resources?.limits?.memory
    // Not read again: it may go between the list and a second look, and a list does not fail over one that went.
    const handle = this.#client.sandboxes.borrowed(object)
    return new AgentSandboxInstance(handle, {
      id: labels[idLabel] ?? name,
      projectId: annotations[projectAnnotation] ?? '',
      status: instanceStatus(object),
      idleTimeoutMinutes: Number.isFinite(minutes) && minutes > 0 ? minutes : undefined,
      memoryLimitBytes: memory === undefined ? undefined : quantityToNumber(memory),
      stop: async () => {
        await this.#remove(object)
        handle.detach()
      },
    })
  }

  /** Removes this sandbox, and never a later one of the same project. */
  async #remove(object: Stored<Sandbox>): Promise<void> {
    const { labels = {}, annotations = {}, name, uid } = object.metadata
    const id = labels[idLabel] ?? name
    const about = { sandboxId: id, projectId: annotations[projectAnnotation] ?? '' }
    this.#tell({ type: 'sandbox:stopping', ...about })
    try {
      await this.#client.sandboxes.objects.delete(name, { preconditions: { uid } })
    } catch (error) {
      if (toSandboxError(error).code !== 'Conflict') throw error
    }
    await this.#open(name, id)
    this.#tell({ type: 'sandbox:stopped', ...about })
  }

  #tell(event: ProviderEvent): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(event)
      } catch (error) {
        // A listener that throws must not keep a sandbox from being made or removed.
        process.emitWarning(`a listener of sandbox events failed: ${toSandboxError(error).message}`)
      }
    }
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

function taken(projectId: string): SandboxError {
  return new SandboxError('AlreadyExists', `project "${projectId}" has a sandbox already`)
}

/** A project's id as a label value and a part of a name. */
function hash(projectId: string): string {
  return createHash('sha256').update(projectId).digest('hex').slice(0, 20)
}

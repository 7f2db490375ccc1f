import type {
  KubeObject,
  OwnerReference,
  Pod,
  Sandbox,
  SandboxClaim,
  SandboxTemplate,
  SandboxWarmPool,
  Service,
  Stored,
} from '@corral/resources'

export const AGENTS = 'agents.x-k8s.io'
export const EXTENSIONS = 'extensions.agents.x-k8s.io'
export const nameHashLabel = `${AGENTS}/sandbox-name-hash`
export const adoptableLabel = `${AGENTS}/adoptable`
export const poolLabel = `${AGENTS}/warm-pool-sandbox`
export const templateRefLabel = `${AGENTS}/sandbox-template-ref-hash`
export const assignment = `${AGENTS}/sandbox-name`
export const safeToEvict = 'cluster-autoscaler.kubernetes.io/safe-to-evict'

type PodTemplate = Sandbox['spec']['podTemplate']
type Metadata = NonNullable<KubeObject['metadata']>

export const podTemplate = (change: Partial<PodTemplate> = {}): PodTemplate => ({
  spec: { containers: [{ name: 'main', image: 'busybox:1' }] },
  ...change,
})

export function sandbox(name: string, spec: Partial<Sandbox['spec']> = {}, metadata: Metadata = {}): Sandbox {
  return {
    apiVersion: `${AGENTS}/v1beta1`,
    kind: 'Sandbox',
    metadata: { name, ...metadata },
    spec: { podTemplate: podTemplate(), ...spec },
  }
}

export function template(name = 'tmpl', spec: Partial<SandboxTemplate['spec']> = {}): SandboxTemplate {
  return {
    apiVersion: `${EXTENSIONS}/v1beta1`,
    kind: 'SandboxTemplate',
    metadata: { name },
    spec: { podTemplate: podTemplate(), ...spec },
  }
}

export function pool(name = 'pool', replicas = 1, spec: Partial<SandboxWarmPool['spec']> = {}): SandboxWarmPool {
  return {
    apiVersion: `${EXTENSIONS}/v1beta1`,
    kind: 'SandboxWarmPool',
    metadata: { name },
    spec: { replicas, sandboxTemplateRef: { name: 'tmpl' }, ...spec },
  }
}

export function claim(name = 'claim', spec: Partial<SandboxClaim['spec']> = {}, metadata: Metadata = {}): SandboxClaim {
  return {
    apiVersion: `${EXTENSIONS}/v1beta1`,
    kind: 'SandboxClaim',
    metadata: { name, ...metadata },
    spec: { warmPoolRef: { name: 'pool' }, ...spec },
  }
}

export function pod(name: string, metadata: Metadata = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: { containers: [{ name: 'main', image: 'busybox:1' }] },
  }
}

export function headless(name: string, metadata: Metadata = {}, spec: Service['spec'] = {}): Service {
  const ports = [{ name: 'old', port: 1, targetPort: 1 }]
  const selector = { app: 'old' }
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, ...metadata },
    spec: { clusterIP: 'None', selector, ports, ...spec },
  }
}

export const storage = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }

export function ownerRef(owner: Stored<KubeObject>, change: Partial<OwnerReference> = {}): OwnerReference {
  const { name, uid } = owner.metadata
  const { apiVersion, kind } = owner
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true, ...change }
}

/** The instant so many seconds from now, in whole seconds. */
export const inSeconds = (seconds: number): string =>
  new Date(Date.now() + seconds * 1_000).toISOString().replace(/\.\d+Z/, 'Z')

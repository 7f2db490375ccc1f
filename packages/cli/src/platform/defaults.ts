import { createHash } from 'node:crypto'
import type { KubeClient } from '@corral/kube'
import { graceAnnotation } from '@corral/node'
import type { SandboxProviderSettings } from '@corral/protocol'
import {
  isAlreadyExists,
  type KubeObject,
  Namespaces,
  type NetworkPolicyPeer,
  type NetworkPolicyPort,
  type ResourceKind,
  type SandboxTemplate,
  SandboxTemplates,
  type SandboxWarmPool,
  SandboxWarmPools,
  type Service,
  Services,
} from '@corral/resources'
import { version } from '../version.js'
import { brokerService, brokerServicePort, daemonImage, platformNamespace } from './names.js'
import { restrictedPod, sandboxContainer } from './pod-security.js'

const controlPlane = { podSelector: { matchLabels: { app: 'corral' } } }
/** Where every distribution runs the DNS of its cluster. */
export const clusterDns: NetworkPolicyPeer = {
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } },
  podSelector: { matchLabels: { 'k8s-app': 'kube-dns' } },
}

export const dnsPorts: NetworkPolicyPort[] = [
  { protocol: 'UDP', port: 53 },
  { protocol: 'TCP', port: 53 },
]

/** The template tasks run on unless they name another: the daemon, a workspace, and a way to the broker and nowhere else. */
export const defaultTemplate: SandboxTemplate = {
  apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
  kind: 'SandboxTemplate',
  metadata: { name: 'default', namespace: platformNamespace },
  spec: {
    podTemplate: {
      // A task whose agent fills the disk still gets its work out: the agent ends first, its sandbox this much later.
      metadata: { annotations: { [graceAnnotation]: '120' } },
      spec: {
        // Under a managed policy the controllers give pods public name servers, which do not know the broker.
        dnsPolicy: 'ClusterFirst',
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        restartPolicy: 'Always',
        terminationGracePeriodSeconds: 5,
        containers: [
          {
            name: 'sandbox',
            image: daemonImage,
            imagePullPolicy: 'IfNotPresent',
            ports: [{ name: 'daemon', containerPort: 8888, protocol: 'TCP' }],
            resources: {
              requests: { cpu: '250m', 'ephemeral-storage': '1Gi' },
              limits: { memory: '4Gi', 'ephemeral-storage': '10Gi' },
            },
            readinessProbe: { httpGet: { path: '/healthz', port: 8888 }, periodSeconds: 1, timeoutSeconds: 5 },
            volumeMounts: [{ name: 'workspace', mountPath: '/workspace' }],
          },
        ],
        volumes: [{ name: 'workspace', emptyDir: {} }],
      },
    },
    networkPolicyManagement: 'Managed',
    networkPolicy: {
      ingress: [{ from: [controlPlane], ports: [{ protocol: 'TCP', port: 8888 }] }],
      egress: [
        { to: [controlPlane], ports: [{ protocol: 'TCP', port: brokerServicePort }] },
        {
          to: [clusterDns],
          ports: dnsPorts,
        },
      ],
    },
  },
}

export function defaultPool(replicas: number): SandboxWarmPool {
  return {
    apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
    kind: 'SandboxWarmPool',
    metadata: { name: 'default', namespace: platformNamespace },
    spec: { replicas, sandboxTemplateRef: { name: 'default' } },
  }
}

/** The name sandboxes know the broker by; the node's egress dials where it really is. */
const brokerServiceObject: Service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: brokerService, namespace: platformNamespace },
  spec: { selector: { app: 'corral' }, ports: [{ name: 'http', port: brokerServicePort, protocol: 'TCP' }] },
}

/** Creates what is missing and leaves what is there: it is the user's from then on. */
export async function ensureDefaults(
  client: KubeClient,
  { warmSandboxes, namespace = platformNamespace }: { warmSandboxes: number; namespace?: string },
): Promise<void> {
  const inside = <T extends KubeObject>(object: T): T => ({ ...object, metadata: { ...object.metadata, namespace } })
  await ensure(client, Namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
  await ensure(client, Services, inside(brokerServiceObject))
  await ensure(client, SandboxTemplates, inside(defaultTemplate))
  await ensure(client, SandboxWarmPools, inside(defaultPool(warmSandboxes)))
}

/**
 * The pool for tasks of another platform, named after what distinguishes it, so that several platforms share one. Its
 * sandboxes reach nothing: the model broker comes to them.
 */
export async function ensureProviderPool(
  client: KubeClient,
  namespace: string,
  settings: Pick<SandboxProviderSettings, 'runtime_class_name' | 'image' | 'warm'>,
): Promise<string> {
  const { runtime_class_name, image, warm = 0 } = settings
  const distinct = [runtime_class_name, image].filter((part) => part !== undefined)
  const hash = createHash('sha256').update(JSON.stringify(distinct)).digest('hex').slice(0, 8)
  const name = distinct.length === 0 ? 'corral-tasks' : `corral-tasks-${hash}`
  const { podTemplate } = defaultTemplate.spec
  const containers = podTemplate.spec.containers.map((container) => ({
    ...container,
    // Of this release: a cluster that has been given our images has them under their version, never as "latest".
    image: image ?? `${daemonImage}:${version}`,
    securityContext: sandboxContainer,
  }))
  const runtime = runtime_class_name ? { runtimeClassName: runtime_class_name } : {}
  const metadata = { name, namespace }
  await ensure(client, SandboxTemplates, {
    ...defaultTemplate,
    metadata,
    spec: {
      ...defaultTemplate.spec,
      podTemplate: {
        ...podTemplate,
        spec: { ...podTemplate.spec, ...runtime, securityContext: restrictedPod, containers },
      },
      networkPolicy: { ingress: [], egress: [] },
    },
  })
  const pool = defaultPool(warm)
  await ensure(client, SandboxWarmPools, { ...pool, metadata, spec: { ...pool.spec, sandboxTemplateRef: { name } } })
  return name
}

async function ensure<T extends KubeObject>(client: KubeClient, kind: ResourceKind<T>, object: T): Promise<void> {
  await client.create(kind, object).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error
  })
}

import type { KubeClient } from '@corral/kube'
import {
  isAlreadyExists,
  type KubeObject,
  Namespaces,
  type ResourceKind,
  type SandboxTemplate,
  SandboxTemplates,
  type SandboxWarmPool,
  SandboxWarmPools,
  type Service,
  Services,
} from '@corral/resources'
import { brokerService, brokerServicePort, daemonImage, platformNamespace } from './names.js'

const controlPlane = { podSelector: { matchLabels: { app: 'corral' } } }

/** The template tasks run on unless they name another: the daemon, a workspace, and a way to the broker and nowhere else. */
export const defaultTemplate: SandboxTemplate = {
  apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
  kind: 'SandboxTemplate',
  metadata: { name: 'default', namespace: platformNamespace },
  spec: {
    podTemplate: {
      spec: {
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
            resources: { limits: { memory: '4Gi' } },
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
          ports: [
            { protocol: 'UDP', port: 53 },
            { protocol: 'TCP', port: 53 },
          ],
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
export async function ensureDefaults(client: KubeClient, options: { warmSandboxes: number }): Promise<void> {
  await ensure(client, Namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: platformNamespace } })
  await ensure(client, Services, brokerServiceObject)
  await ensure(client, SandboxTemplates, defaultTemplate)
  await ensure(client, SandboxWarmPools, defaultPool(options.warmSandboxes))
}

async function ensure<T extends KubeObject>(client: KubeClient, kind: ResourceKind<T>, object: T): Promise<void> {
  await client.create(kind, object).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error
  })
}

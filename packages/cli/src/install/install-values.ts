import { defaultAgentName } from '@corral/agents'

/** A value of a manifest: given, or in the chart an expression in its place. */
export type Leaf = string | number | boolean | object

/** What an installation can choose. The Helm chart fills these with expressions, `corral install` with values. */
export interface InstallValues {
  namespace: string
  /** Image of server and controllers. */
  image: Leaf
  pullPolicy: Leaf
  pullSecrets: Leaf
  server: {
    maxTasks: Leaf
    /** What built environments may take of the volume; 0 keeps none. */
    snapshotBudget: Leaf
    agent: Leaf
    logLevel: Leaf
    /** The Secret with the keys `token` and `broker-secret`. */
    secretName: Leaf
    /** A Secret whose keys are variables such as `ANTHROPIC_API_KEY`; it need not exist. */
    providerKeysSecret: Leaf
    /** The claim of its volume. */
    claimName: Leaf
    storageSize: Leaf
    /** Fields of the claim besides, such as its storage class. */
    storage: object
    resources: Leaf
    /** Where pods may run, and variables beside ours. */
    placement: object
    extraEnv: Leaf
  }
  controllers: {
    resources: Leaf
    placement: object
    /** `true` where they export traces, to where the variables say. */
    isTracing: Leaf
    extraEnv: Leaf
  }
  sandbox: {
    image: Leaf
    pullPolicy: Leaf
    pullSecrets: Leaf
    replicas: Leaf
    resources: Leaf
    /** Runtime class and placement. */
    pod: object
  }
  /** `true` where the server serves `external.metrics.k8s.io`: a pod with another answer is another pod. */
  externalMetrics: Leaf
  networkPolicy: {
    /** Who may ask the HTTP API and who may read metrics, as peers of a NetworkPolicy. */
    httpFrom: Leaf
    metricsFrom: Leaf
    /** Ports on which the server reaches the API server, git and models, wherever they are. */
    serverEgressPorts: Leaf
    apiServerPorts: Leaf
  }
}

/** Ports of `corral server` in a pod. */
export const serverPorts = { http: 8090, broker: 8787, metrics: 9090, externalMetrics: 8443 } as const

const tcp = (port: number): object => ({ port, protocol: 'TCP' })

/** The defaults of an installation; also the values of the chart. */
export const defaultValues: InstallValues = {
  namespace: 'corral',
  image: 'corral:0.1.0',
  pullPolicy: 'IfNotPresent',
  pullSecrets: [],
  server: {
    maxTasks: 10,
    snapshotBudget: '5G',
    agent: defaultAgentName,
    logLevel: 'info',
    secretName: 'corral-server',
    providerKeysSecret: 'corral-provider-keys',
    claimName: 'corral-server',
    storageSize: '20Gi',
    storage: {},
    resources: { requests: { cpu: '250m', memory: '256Mi' }, limits: { memory: '2Gi' } },
    placement: {},
    extraEnv: [],
  },
  controllers: {
    resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '1Gi' } },
    placement: {},
    isTracing: false,
    extraEnv: [],
  },
  sandbox: {
    image: 'corral/daemon:0.1.0',
    pullPolicy: 'IfNotPresent',
    pullSecrets: [],
    replicas: 2,
    resources: {
      requests: { cpu: '250m', memory: '512Mi', 'ephemeral-storage': '1Gi' },
      limits: { memory: '4Gi', 'ephemeral-storage': '10Gi' },
    },
    pod: {},
  },
  externalMetrics: 'false',
  networkPolicy: {
    httpFrom: [{ podSelector: { matchLabels: { app: 'corral-test' } } }],
    metricsFrom: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }],
    serverEgressPorts: [tcp(22), tcp(80), tcp(443), tcp(6443)],
    apiServerPorts: [tcp(443), tcp(6443)],
  },
}

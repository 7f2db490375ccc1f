/**
 * Writes the Helm chart's templates and the kustomize base from the objects that `corral install` applies:
 *   npx tsx --conditions=corral-source scripts/generate/chart.ts
 */
import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { dump } from 'js-yaml'
import { controllerObjects } from '../../packages/cli/src/install/controller-objects.js'
import { defaultValues, type InstallValues } from '../../packages/cli/src/install/install-values.js'
import { installManifests } from '../../packages/cli/src/install/manifests.js'
import { hookLabels, networkPolicies, testRepositoryPort } from '../../packages/cli/src/install/network-policies.js'
import { sandboxObjects } from '../../packages/cli/src/install/sandbox-objects.js'
import {
  serverAccess,
  serverDeployment,
  serverDisruptionBudget,
  serverLabels,
  serverServices,
  serverVolume,
} from '../../packages/cli/src/install/server-objects.js'
import { restrictedContainer, restrictedPod } from '../../packages/cli/src/platform/pod-security.js'
import { chartTemplate, expression, optional, structure } from './chart-template.js'

const root = join(import.meta.dirname, '../..')
const namespace = expression('.Release.Namespace')
const image = (of: string): string => expression(`printf "%s:%s" ${of}.repository ${of}.tag | quote`)
const placement = (of: string): object => ({
  ...optional('nodeSelector', `${of}.nodeSelector`),
  ...optional('tolerations', `${of}.tolerations`),
  ...optional('affinity', `${of}.affinity`),
})

/** A list of the values, longer by another one where a collector of traces is named. */
const traced = (list: string, more: string, endpoint: string): object =>
  structure(`(ternary (concat ${list} ${more}) ${list} (ne .Values.tracing.${endpoint} ""))`)
const collector = (endpoint: string): string =>
  `(list (dict "name" "OTEL_EXPORTER_OTLP_ENDPOINT" "value" .Values.tracing.${endpoint}))`

/** The values of an installation as expressions over the values of the chart. */
const chartValues: InstallValues = {
  namespace,
  image: image('.Values.image'),
  pullPolicy: expression('.Values.image.pullPolicy'),
  pullSecrets: structure('.Values.imagePullSecrets'),
  server: {
    maxTasks: expression('.Values.server.maxTasks'),
    snapshotBudget: expression('.Values.server.snapshotBudget | default "5G"'),
    agent: expression('.Values.server.agent'),
    logLevel: expression('.Values.server.logLevel'),
    secretName: expression('.Values.server.existingSecret | default "corral-server" | quote'),
    providerKeysSecret: expression('.Values.server.providerKeysSecret | quote'),
    claimName: expression('.Values.server.persistence.existingClaim | default "corral-server" | quote'),
    storageSize: expression('.Values.server.persistence.size | quote'),
    storage: optional('storageClassName', '.Values.server.persistence.storageClassName'),
    resources: structure('.Values.server.resources'),
    placement: placement('.Values.server'),
    extraEnv: traced('.Values.server.extraEnv', collector('endpoint'), 'endpoint'),
  },
  controllers: {
    resources: structure('.Values.controllers.resources'),
    placement: placement('.Values.controllers'),
    isTracing: expression('ne .Values.tracing.grpcEndpoint ""'),
    extraEnv: traced('list', collector('grpcEndpoint'), 'grpcEndpoint'),
  },
  sandbox: {
    image: image('.Values.sandbox.image'),
    pullPolicy: expression('.Values.sandbox.image.pullPolicy'),
    pullSecrets: structure('.Values.imagePullSecrets'),
    replicas: expression('.Values.sandbox.warm'),
    resources: structure('.Values.sandbox.resources'),
    pod: { ...optional('runtimeClassName', '.Values.sandbox.runtimeClassName'), ...placement('.Values.sandbox') },
  },
  externalMetrics: expression('.Values.externalMetrics.enabled | quote'),
  networkPolicy: {
    httpFrom: structure('.Values.networkPolicy.httpFrom'),
    metricsFrom: structure('.Values.networkPolicy.metricsFrom'),
    serverEgressPorts: traced('.Values.networkPolicy.serverEgressPorts', '.Values.tracing.ports', 'endpoint'),
    apiServerPorts: traced('.Values.networkPolicy.apiServerPorts', '.Values.tracing.ports', 'grpcEndpoint'),
  },
}

const meta = (name: string, more: object = {}): object => ({ name, namespace, labels: serverLabels, ...more })

const ingress = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: meta('corral', optional('annotations', '.Values.ingress.annotations')),
  spec: {
    ...optional('ingressClassName', '.Values.ingress.className'),
    ...optional('tls', '.Values.ingress.tls'),
    rules: [
      {
        host: expression('.Values.ingress.host | quote'),
        http: {
          paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'corral', port: { name: 'http' } } } }],
        },
      },
    ],
  },
}
const httpRoute = {
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'HTTPRoute',
  metadata: meta('corral'),
  spec: {
    parentRefs: structure('.Values.httpRoute.parentRefs'),
    hostnames: structure('.Values.httpRoute.hostnames'),
    rules: [{ backendRefs: [{ name: 'corral', port: 80 }], timeouts: { request: '0s' } }],
  },
}
const monitor = (name: string, labels: object): object => ({
  apiVersion: 'monitoring.coreos.com/v1',
  kind: 'ServiceMonitor',
  metadata: { name, namespace, ...optional('labels', '.Values.monitoring.labels') },
  spec: {
    selector: { matchLabels: labels },
    endpoints: [{ port: 'metrics', interval: expression('.Values.monitoring.interval') }],
  },
})
const quota = {
  apiVersion: 'v1',
  kind: 'ResourceQuota',
  metadata: meta('corral'),
  spec: { hard: structure('.Values.quota.hard') },
}

const hook = (name: string, annotations: Record<string, string>): object => ({
  name,
  namespace,
  labels: hookLabels,
  annotations,
})
const hookContainer = {
  image: chartValues.image,
  imagePullPolicy: chartValues.pullPolicy,
  securityContext: restrictedContainer,
  resources: { requests: { cpu: '50m', memory: '96Mi' }, limits: { memory: '512Mi' } },
}

/** Before the release goes: tasks end and let go of their finalizers while a server is there to do it. */
const drain = {
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: hook('corral-drain', {
    'helm.sh/hook': 'pre-delete',
    'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
  }),
  spec: {
    backoffLimit: 2,
    template: {
      metadata: { labels: hookLabels },
      spec: {
        serviceAccountName: 'corral-server',
        restartPolicy: 'Never',
        enableServiceLinks: false,
        securityContext: restrictedPod,
        imagePullSecrets: chartValues.pullSecrets,
        containers: [
          {
            name: 'drain',
            ...hookContainer,
            args: [
              'server',
              'drain',
              '--kubeconfig=',
              `--namespace=${namespace}`,
              `--timeout=${expression('.Values.drain.timeoutSeconds')}`,
              `--tasks=${expression('.Values.drain.tasks')}`,
            ],
            env: structure('.Values.server.extraEnv'),
          },
        ],
      },
    },
  },
}

/** `helm test`: a task from a repository of its own to a pushed branch, with no agent but a command. */
const smokeTest = [
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: hook('corral-test', { 'helm.sh/hook': 'test', 'helm.sh/hook-weight': '-1' }),
    data: { 'run-task.mjs': expression('.Files.Get "files/run-task.mjs" | quote') },
  },
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: hook('corral-test', {
      'helm.sh/hook': 'test',
      'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
    }),
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: restrictedPod,
      imagePullSecrets: chartValues.pullSecrets,
      containers: [
        {
          name: 'run-task',
          ...hookContainer,
          command: ['node', '/opt/test/run-task.mjs'],
          env: [
            { name: 'CORRAL_URL', value: `http://corral.${namespace}.svc` },
            { name: 'CORRAL_TOKEN_FILE', value: '/etc/corral/token' },
            { name: 'REPOSITORY_PORT', value: String(testRepositoryPort) },
            { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
          ],
          volumeMounts: [
            { name: 'test', mountPath: '/opt/test', readOnly: true },
            { name: 'secrets', mountPath: '/etc/corral', readOnly: true },
            { name: 'tmp', mountPath: '/tmp' },
          ],
        },
      ],
      volumes: [
        { name: 'test', configMap: { name: 'corral-test' } },
        {
          name: 'secrets',
          secret: { secretName: chartValues.server.secretName, items: [{ key: 'token', path: 'token' }] },
        },
        { name: 'tmp', emptyDir: {} },
      ],
    },
  },
]

/** Path below `deploy` → content, for every generated file but the CRDs. */
export function chartFiles(): Map<string, string> {
  const template = (name: string, objects: readonly object[], condition?: string): [string, string] => [
    `helm/corral/templates/${name}`,
    chartTemplate(objects, condition),
  ]
  return new Map([
    template('server.yaml', [
      ...serverAccess(chartValues),
      ...serverServices(chartValues),
      serverDeployment(chartValues),
      serverDisruptionBudget(chartValues),
    ]),
    template('volume.yaml', [serverVolume(chartValues)], 'not .Values.server.persistence.existingClaim'),
    template('controllers.yaml', controllerObjects(chartValues), '.Values.controllers.enabled'),
    template('sandbox.yaml', sandboxObjects(chartValues), '.Values.sandbox.enabled'),
    template('network-policies.yaml', networkPolicies(chartValues), '.Values.networkPolicy.enabled'),
    template('ingress.yaml', [ingress], '.Values.ingress.enabled'),
    template('http-route.yaml', [httpRoute], '.Values.httpRoute.enabled'),
    template(
      'service-monitors.yaml',
      [monitor('corral-server', serverLabels), monitor('corral-controller', { app: 'corral-controller' })],
      '.Values.monitoring.enabled',
    ),
    template('quota.yaml', [quota], '.Values.quota.enabled'),
    template('drain.yaml', [drain], '.Values.drain.enabled'),
    template('tests/run-task.yaml', smokeTest),
    ['kustomize/base/corral.yaml', kustomizeBase()],
    ['kustomize/base/kustomization.yaml', kustomization],
  ])
}

const kustomization = `# Generated by scripts/generate/chart.ts.
# Make the Secret first: kubectl -n corral create secret generic corral-server \\
#   --from-literal=token="$(openssl rand -hex 32)" --from-literal=broker-secret="$(openssl rand -hex 32)"
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - corral.yaml
`

function kustomizeBase(): string {
  const objects = installManifests(defaultValues, { controllers: true })
  const texts = objects.map((object) => `---\n${dump(object, { lineWidth: -1, noRefs: true })}`)
  return `# Generated by scripts/generate/chart.ts.\n${texts.join('')}`
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const [name, text] of chartFiles()) {
    const path = join(root, 'deploy', name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }
  const crds = join(root, 'deploy/helm/corral/crds')
  rmSync(crds, { recursive: true, force: true })
  mkdirSync(crds, { recursive: true })
  const source = join(root, 'config/crds/cluster')
  for (const name of readdirSync(source)) cpSync(join(source, name), join(crds, name))
}

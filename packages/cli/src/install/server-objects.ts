import { brokerService } from '../platform/names.js'
import { restrictedContainer, restrictedPod } from '../platform/pod-security.js'
import { type InstallValues, serverPorts } from './install-values.js'
import { bindingObject, roleObject, serverPermissions } from './permissions.js'

const name = 'corral-server'
/** What sandboxes and policies know the server's pods by. */
export const serverLabels = { app: 'corral' }

/** The account of the server and what it may do. */
export function serverAccess({ namespace }: InstallValues): object[] {
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace, labels: serverLabels } },
    roleObject(name, serverPermissions, namespace),
    bindingObject(name, { name, namespace }, namespace),
  ]
}

/** The volume with task records and mirrors: a backup of it and of the AgentTasks is a backup of Corral. */
export function serverVolume({ namespace, server }: InstallValues): object {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace, labels: serverLabels },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: server.storageSize } },
      ...server.storage,
    },
  }
}

export function serverServices({ namespace }: InstallValues): object[] {
  const service = (called: string, ports: object[]): object => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: called, namespace, labels: serverLabels },
    spec: { selector: serverLabels, ports },
  })
  const { metrics, broker } = serverPorts
  return [
    service('corral', [
      { name: 'http', port: 80, targetPort: 'http', protocol: 'TCP' },
      { name: 'metrics', port: metrics, targetPort: 'metrics', protocol: 'TCP' },
    ]),
    service(brokerService, [{ name: 'http', port: broker, targetPort: 'broker', protocol: 'TCP' }]),
  ]
}

/** One replica on its volume: the next one starts when the former has let go of it. Tasks go on meanwhile. */
export function serverDeployment(values: InstallValues): object {
  const { namespace, server } = values
  const { http, broker, metrics, externalMetrics } = serverPorts
  const probe = (path: string, periodSeconds: number): object => ({
    httpGet: { path, port: 'metrics' },
    periodSeconds,
    timeoutSeconds: 5,
  })
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace, labels: serverLabels },
    spec: {
      replicas: 1,
      strategy: { type: 'Recreate' },
      selector: { matchLabels: serverLabels },
      template: {
        metadata: {
          labels: serverLabels,
          annotations: { 'corral.dev/external-metrics': values.externalMetrics },
        },
        spec: {
          serviceAccountName: name,
          enableServiceLinks: false,
          terminationGracePeriodSeconds: 30,
          securityContext: restrictedPod,
          imagePullSecrets: values.pullSecrets,
          containers: [
            {
              name: 'server',
              image: values.image,
              imagePullPolicy: values.pullPolicy,
              args: [
                'server',
                '--kubeconfig=',
                `--namespace=${namespace}`,
                '--data-dir=/var/lib/corral/data',
                '--host=0.0.0.0',
                `--port=${http}`,
                `--broker-port=${broker}`,
                `--metrics-address=:${metrics}`,
                `--external-metrics-address=:${externalMetrics}`,
                '--token-file=/etc/corral/token',
                '--broker-secret-file=/etc/corral/broker-secret',
                flag('max-tasks', server.maxTasks),
                flag('snapshot-budget', server.snapshotBudget),
                flag('agent', server.agent),
                flag('log-level', server.logLevel),
              ],
              env: server.extraEnv,
              envFrom: [{ secretRef: { name: server.providerKeysSecret, optional: true } }],
              ports: [
                { name: 'http', containerPort: http, protocol: 'TCP' },
                { name: 'broker', containerPort: broker, protocol: 'TCP' },
                { name: 'metrics', containerPort: metrics, protocol: 'TCP' },
              ],
              // Every second until it answers once: a rollout waits for this, and readiness is asked for less often. A second
              // server, which stands by, has started and is never ready: no Service leads to it.
              startupProbe: { ...probe('/startupz', 1), failureThreshold: 120 },
              readinessProbe: probe('/readyz', 5),
              livenessProbe: probe('/healthz', 10),
              resources: server.resources,
              securityContext: restrictedContainer,
              volumeMounts: [
                { name: 'data', mountPath: '/var/lib/corral' },
                { name: 'tmp', mountPath: '/tmp' },
                { name: 'secrets', mountPath: '/etc/corral', readOnly: true },
                { name: 'external-metrics', mountPath: '/etc/corral-external-metrics', readOnly: true },
              ],
            },
          ],
          volumes: [
            { name: 'data', persistentVolumeClaim: { claimName: server.claimName } },
            { name: 'tmp', emptyDir: {} },
            { name: 'secrets', secret: { secretName: server.secretName } },
            { name: 'external-metrics', secret: { secretName: 'corral-external-metrics', optional: true } },
          ],
          ...server.placement,
        },
      },
    },
  }
}

/** A flag with its value in one word; an expression of the chart is quoted as a whole. */
function flag(named: string, value: unknown): string {
  return `--${named}=${String(value)}`
}

/** While a node is drained the one server may go: tasks go on in their sandboxes, the next server continues them. */
export function serverDisruptionBudget({ namespace }: InstallValues): object {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace, labels: serverLabels },
    spec: { maxUnavailable: 1, selector: { matchLabels: serverLabels } },
  }
}

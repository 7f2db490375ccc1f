import { clusterDns, dnsPorts } from '../platform/defaults.js'
import { controllerLabels } from './controller-objects.js'
import { type InstallValues, serverPorts } from './install-values.js'
import { serverLabels } from './server-objects.js'

/** Pods of a hook or a test of the chart. */
export const hookLabels = { app: 'corral-test' }
/** Every pod of a sandbox that comes from a template. */
const anySandbox = {
  podSelector: { matchExpressions: [{ key: 'agents.x-k8s.io/sandbox-template-ref-hash', operator: 'Exists' }] },
}
/** Where the test of the chart serves its repository. */
export const testRepositoryPort = 9418

const tcp = (port: number): object => ({ port, protocol: 'TCP' })
const dns = { to: [clusterDns], ports: dnsPorts }

/**
 * Nothing in the namespace is reached and nothing reaches out unless one of these or the policy of a template says so.
 * Sandboxes have the policy of their template: in from the server, out to the broker and DNS.
 */
export function networkPolicies({ namespace, networkPolicy }: InstallValues): object[] {
  const policy = (name: string, podSelector: object, rules: { ingress?: object[]; egress?: object[] }): object => ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name, namespace },
    spec: { podSelector, policyTypes: ['Ingress', 'Egress'], ...rules },
  })
  return [
    policy('corral-default-deny', {}, {}),
    policy(
      'corral-server',
      { matchLabels: serverLabels },
      {
        ingress: [
          { from: networkPolicy.httpFrom, ports: [tcp(serverPorts.http)] } as object,
          { from: networkPolicy.metricsFrom, ports: [tcp(serverPorts.metrics)] } as object,
          { from: [anySandbox], ports: [tcp(serverPorts.broker)] },
        ],
        egress: [
          dns,
          { to: [anySandbox], ports: [tcp(8888)] },
          { to: [{ podSelector: { matchLabels: hookLabels } }], ports: [tcp(testRepositoryPort)] },
          { ports: networkPolicy.serverEgressPorts } as object,
        ],
      },
    ),
    policy(
      'corral-controller',
      { matchLabels: controllerLabels },
      {
        ingress: [{ from: networkPolicy.metricsFrom, ports: [tcp(8080)] } as object],
        egress: [dns, { ports: networkPolicy.apiServerPorts } as object],
      },
    ),
    policy(
      'corral-hooks',
      { matchLabels: hookLabels },
      {
        ingress: [{ from: [{ podSelector: { matchLabels: serverLabels } }], ports: [tcp(testRepositoryPort)] }],
        egress: [
          dns,
          { to: [{ podSelector: { matchLabels: serverLabels } }], ports: [tcp(serverPorts.http)] },
          { ports: networkPolicy.apiServerPorts } as object,
        ],
      },
    ),
  ]
}

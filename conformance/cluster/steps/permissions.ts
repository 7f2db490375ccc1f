import { deepEqual } from 'node:assert/strict'
import {
  corePermissions,
  electionPermissions,
  extensionPermissions,
  type Permission,
  serverPermissions,
} from '../../../packages/cli/src/install/permissions.js'
import type { AuditedRequest } from '../harness/audit.js'
import type { Cluster } from '../harness/cluster.js'
import type { Step } from '../harness/report.js'

/** What Test connection would like to know of the whole cluster, and does without. */
const looksOfTest: ReadonlySet<string> = new Set(
  ['get namespaces.', 'list nodes.', 'list deployments.apps', 'list runtimeclasses.node.k8s.io'].map(
    (look) => `corral-server: ${look}`,
  ),
)

/** The requests that the real API server wrote down while everything else ran, beside the roles. */
export function permissionSteps(cluster: Cluster, requests: () => AuditedRequest[]): Step[] {
  const { kubectl, namespace } = cluster
  const verbsOf = (permissions: readonly Permission[]): string[] =>
    permissions.flatMap(({ group, resource, verbs }) => verbs.map((verb) => `${verb} ${resource}.${group}`))
  const used = (account: string): Set<string> =>
    new Set(
      requests()
        .filter((request) => request.account === account && request.isAllowed)
        .map(({ verb, resource, group }) => `${verb} ${resource}.${group}`),
    )
  return [
    {
      title: 'no request of the server or the controllers was forbidden by the real API server',
      async run() {
        const refused = requests()
          .filter(({ isAllowed }) => !isAllowed)
          .map((each) => `${each.account}: ${each.verb} ${each.resource}.${each.group}`)
        deepEqual(
          [...new Set(refused)].filter((each) => !looksOfTest.has(each)),
          [],
        )
        return `${requests().length} requests`
      },
    },
    {
      title: 'each verb of the server’s role was used',
      async run() {
        const seen = used('corral-server')
        const idle = verbsOf(serverPermissions).filter((verb) => !seen.has(verb))
        deepEqual(idle, [])
        return `${seen.size} kinds of requests`
      },
    },
    {
      title: 'the controllers used nothing beyond their roles, and most of them',
      async run() {
        const all = verbsOf([...corePermissions, ...extensionPermissions, ...electionPermissions])
        const seen = used('corral-controller')
        const idle = all.filter((verb) => !seen.has(verb))
        return `not used in this run: ${idle.join(', ') || 'none'}`
      },
    },
    {
      title: 'the server reads no Secret, nothing of another namespace, and starts no pod',
      async run() {
        const as = ['--as', `system:serviceaccount:${namespace}:corral-server`]
        const may = async (...what: string[]): Promise<string> =>
          (await cluster.call('auth', 'can-i', ...what, ...as)).stdout.trim()
        deepEqual(
          await Promise.all([
            may('get', 'secrets'),
            may('list', 'pods', '-n', 'kube-system'),
            may('create', 'pods'),
            may('create', 'pods', '--subresource=exec'),
            may('list', 'nodes'),
            may('list', 'pods'),
          ]),
          ['no', 'no', 'no', 'no', 'no', 'yes'],
        )
        await kubectl('get', 'role', 'corral-server')
        return undefined
      },
    },
  ]
}

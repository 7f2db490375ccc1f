import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { KubeClient } from '@corral/kube'
import { type ClusterRole, ClusterRoles, defineKind, type KubeObject, type Role, Roles } from '@corral/resources'
import { loadAll } from 'js-yaml'
import type { ourAccount } from './our-manager.js'

type AnyRole = ClusterRole | Role

interface SubjectAccessReview extends KubeObject {
  spec: { user: string; resourceAttributes: Record<string, string> }
  status?: { allowed: boolean }
}
const reviews = defineKind<SubjectAccessReview>(
  'authorization.k8s.io/v1',
  'SubjectAccessReview',
  'subjectaccessreviews',
  'Cluster',
)

const rbac = join(import.meta.dirname, '../../../config/rbac')

/** The roles of `config/rbac`, as files and therefore as operators get them. */
export function ourRoles(): AnyRole[] {
  const documents = ['controller', 'extensions', 'leader-election'].flatMap((file) =>
    loadAll(readFileSync(join(rbac, `${file}.yaml`), 'utf8')),
  )
  return (documents as AnyRole[]).filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role')
}

/** Every `verb group/resource` that the roles grant. */
export function grantsOf(roles: readonly AnyRole[]): string[] {
  return roles.flatMap(({ rules }) =>
    (rules ?? []).flatMap(({ apiGroups = [''], resources = [], verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) => verbs.map((verb) => `${verb} ${group}/${resource}`)),
      ),
    ),
  )
}

/** The same roles with one permission taken out. */
export function withoutGrant(roles: readonly AnyRole[], grant: string): AnyRole[] {
  return roles.map((role) => ({
    ...role,
    rules: (role.rules ?? [])
      .map((rule) => {
        const covered = grantsOf([{ ...role, rules: [rule] }])
        return covered.includes(grant)
          ? { ...rule, verbs: rule.verbs.filter((verb) => !grant.startsWith(`${verb} `)) }
          : rule
      })
      .filter(({ verbs }) => verbs.length > 0),
  }))
}

/** Puts the roles in place and waits until the server judges by them. */
export async function applyRoles(
  client: KubeClient,
  roles: readonly AnyRole[],
  expected: { account: typeof ourAccount; grant: string; allowed: boolean },
): Promise<void> {
  const apply = { fieldManager: 'conformance', force: true }
  for (const role of roles)
    await (role.kind === 'Role'
      ? client.apply(Roles, role, apply)
      : client.apply(ClusterRoles, role as ClusterRole, apply))
  const { account, grant, allowed } = expected
  const [verb = '', group = '', resource = '', subresource = ''] = grant.split(/[ /]/)
  const isElection = resource === 'leases'
  const spec = {
    user: `system:serviceaccount:${account.namespace}:${account.name}`,
    resourceAttributes: {
      verb,
      group,
      resource,
      ...(subresource && { subresource }),
      ...(isElection && { namespace: account.namespace, name: 'a3317529.agent-sandbox.x-k8s.io' }),
    },
  }
  const deadlineMs = Date.now() + 240_000
  const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', metadata: {}, spec }
  while ((await client.create(reviews, review)).status?.allowed !== allowed) {
    if (Date.now() > deadlineMs) throw new Error(`the server does not follow the roles: ${grant}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

import { corePermissions, electionPermissions, extensionPermissions } from '../../../scripts/generate/rbac.js'
import type { ManagerCall } from './column.js'

/** Verbs that no suite makes the manager send, and why it needs them all the same. */
const unseen: readonly { verb: string; resource: RegExp; why: string }[] = [
  { verb: 'list', resource: /./, why: 'servers that cannot stream a list through a watch' },
  { verb: 'update', resource: /\/finalizers$/, why: 'clusters that guard owner references' },
  { verb: 'delete', resource: /^persistentvolumeclaims$/, why: 'clusters that guard owner references' },
  { verb: 'patch', resource: /^events$/, why: 'an event that repeats is counted on the first' },
  { verb: 'get', resource: /^pods$/, why: 'a Pod that appears between the look and the create' },
]

export interface PermissionReport {
  /** Calls that the server forbade: permissions that are missing. */
  readonly forbidden: readonly string[]
  /** Permissions that nothing used and nothing explains. */
  readonly needless: readonly string[]
}

/** Compares what `config/rbac` grants with what the manager did during the suite. */
export function permissionReport(calls: readonly ManagerCall[]): PermissionReport {
  const used = new Set(calls.map(({ verb, group, resource }) => `${verb} ${group}/${resource}`))
  const granted = [...corePermissions, ...extensionPermissions, ...electionPermissions].flatMap(
    ({ group, resource, verbs }) => verbs.map((verb) => ({ verb, resource, name: `${verb} ${group}/${resource}` })),
  )
  const isExplained = ({ verb, resource }: { verb: string; resource: string }): boolean =>
    unseen.some((entry) => entry.verb === verb && entry.resource.test(resource))
  return {
    forbidden: calls
      .filter(({ allowed }) => !allowed)
      .map(({ verb, group, resource, example }) => `${verb} ${group}/${resource} (${example})`),
    needless: granted.filter((grant) => !used.has(grant.name) && !isExplained(grant)).map(({ name }) => name),
  }
}

import type { StatusCause } from '@corral/resources'
import { type FieldSet, intersectSets, memberPaths, pathText } from './field-set.js'
import type { Manager } from './manager-entry.js'

/** Fields of one owner that an apply would change. */
export interface Conflict {
  readonly owner: Manager
  readonly fields: FieldSet
}

/** Who owns something of what changed. */
export function findConflicts(owners: readonly Manager[], changed: FieldSet | undefined): Conflict[] {
  const conflicts: Conflict[] = []
  for (const owner of owners) {
    const fields = intersectSets(owner.fields, changed)
    if (fields) conflicts.push({ owner, fields })
  }
  return conflicts
}

/** One cause per field, for the details of the 409. */
export function conflictCauses(conflicts: readonly Conflict[]): StatusCause[] {
  return conflicts.flatMap(({ owner, fields }) =>
    [...memberPaths(fields)].map((path) => ({
      reason: 'FieldManagerConflict',
      message: `conflict with ${managerText(owner)}`,
      field: pathText(path),
    })),
  )
}

/** The message of the 409. */
export function conflictMessage(conflicts: readonly Conflict[]): string {
  const causes = conflictCauses(conflicts)
  const [first] = causes
  if (causes.length === 1 && first) return `Apply failed with 1 conflict: ${first.message}: ${first.field}`
  const lines = [...conflicts]
    .sort((a, b) => (managerText(a.owner) < managerText(b.owner) ? -1 : 1))
    .flatMap(({ owner, fields }) => [
      `conflicts with ${managerText(owner)}:`,
      ...[...memberPaths(fields)].map((path) => `- ${pathText(path)}`),
    ])
  return `Apply failed with ${causes.length} conflicts: ${lines.join('\n')}`
}

function managerText({ manager, subresource, operation, apiVersion }: Manager): string {
  const name = JSON.stringify(manager) + (subresource ? ` with subresource ${JSON.stringify(subresource)}` : '')
  return operation === 'Update' ? `${name} using ${apiVersion}` : name
}

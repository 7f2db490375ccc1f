import { ownerReferenceTo, type PersistentVolumeClaim, type Sandbox, Sandboxes, type Stored } from '@corral/resources'
import { labels } from '../shared/names.js'
import { cannotAdopt, mayAdopt, ownedByOther, ownershipOf } from '../shared/ownership.js'
import type { ChildAction, ChildStep } from './child-step.js'

export interface PvcWorld {
  sandbox: Stored<Sandbox>
  nameHash: string
  findPvc(name: string): Stored<PersistentVolumeClaim> | undefined
}

/** The volumes the Sandbox needs, in the template's order. The first one that cannot be had ends the step. */
export function planPvcs({ sandbox, nameHash, findPvc }: PvcWorld): ChildStep<Stored<PersistentVolumeClaim>> {
  const actions: ChildAction[] = []
  for (const template of sandbox.spec.volumeClaimTemplates ?? []) {
    const name = `${template.metadata?.name ?? ''}-${sandbox.metadata.name}`
    const existing = findPvc(name)
    if (!existing) {
      actions.push({ kind: 'create', child: 'pvc', object: newPvc(sandbox, nameHash, name, template) })
      continue
    }
    const ownership = ownershipOf(existing, sandbox)
    if (ownership.kind === 'owned') continue
    if (ownership.kind === 'other') {
      return { actions, error: ownedByOther('PVC', name, ownership.controller, sandbox.metadata.name) }
    }
    if (!mayAdopt(existing, nameHash)) return { actions, error: cannotAdopt('PVC', name) }
    const ownerReferences = [...(existing.metadata.ownerReferences ?? []), ownerReferenceTo(sandbox, Sandboxes)]
    const failure = 'failed to patch PVC with owner reference'
    actions.push({ kind: 'patch', child: 'pvc', name, patch: { metadata: { ownerReferences } }, failure })
  }
  return { actions }
}

type VolumeClaimTemplate = NonNullable<Sandbox['spec']['volumeClaimTemplates']>[number]

function newPvc(
  sandbox: Stored<Sandbox>,
  nameHash: string,
  name: string,
  template: VolumeClaimTemplate,
): PersistentVolumeClaim {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name,
      ...(sandbox.metadata.namespace !== undefined && { namespace: sandbox.metadata.namespace }),
      labels: { ...template.metadata?.labels, [labels.nameHash]: nameHash },
      ...(template.metadata?.annotations && { annotations: template.metadata.annotations }),
      ownerReferences: [ownerReferenceTo(sandbox, Sandboxes)],
    },
    spec: template.spec,
  }
}

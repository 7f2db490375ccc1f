import { ownerReferenceTo, type Sandbox, Sandboxes, type Service, type Stored } from '@corral/resources'
import { mergeDiff } from '../shared/merge-diff.js'
import { labels } from '../shared/names.js'
import { cannotAdopt, mayAdopt, ownedByOther, ownershipOf, quote } from '../shared/ownership.js'
import type { ChildStep } from './child-step.js'
import { samePorts, servicePorts } from './service-ports.js'

export interface ServiceWorld {
  sandbox: Stored<Sandbox>
  nameHash: string
  service: Stored<Service> | undefined
}

/**
 * What the Sandbox's Service needs next. `spec.service` has three values: true makes one, false removes ours, unset keeps
 * ours and makes none. The step's `found` is the Service in use, absent where there is none.
 */
export function planService(world: ServiceWorld): ChildStep<Stored<Service>> {
  const { sandbox, service } = world
  const wanted = sandbox.spec.service
  if (!service) return { actions: wanted ? [{ kind: 'create', child: 'service', object: newService(world) }] : [] }

  const name = service.metadata.name
  const ownership = ownershipOf(service, sandbox)
  if (wanted === false) {
    if (ownership.kind !== 'owned') return { actions: [] }
    const failure = 'failed to delete service'
    return { actions: [{ kind: 'delete', child: 'service', name, missingIsFine: true, failure }] }
  }
  if (ownership.kind === 'other') {
    return { actions: [], error: ownedByOther('service', name, ownership.controller, sandbox.metadata.name) }
  }
  if (ownership.kind === 'unowned') return wanted === true ? adopt(world, service) : { actions: [] }
  return repair(world, service)
}

function newService({ sandbox, nameHash }: ServiceWorld): Service {
  const ports = servicePorts(sandbox.spec.podTemplate.spec)
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: sandbox.metadata.name,
      ...(sandbox.metadata.namespace !== undefined && { namespace: sandbox.metadata.namespace }),
      labels: { [labels.nameHash]: nameHash },
      ownerReferences: [ownerReferenceTo(sandbox, Sandboxes)],
    },
    spec: {
      clusterIP: 'None',
      selector: { [labels.nameHash]: nameHash },
      ...(ports.length > 0 && { ports }),
    },
  }
}

function adopt(world: ServiceWorld, service: Stored<Service>): ChildStep<Stored<Service>> {
  const { sandbox, nameHash } = world
  const name = service.metadata.name
  if (!mayAdopt(service, nameHash)) return { actions: [], error: cannotAdopt('service', name) }
  const clusterIp = service.spec?.clusterIP
  if (clusterIp && clusterIp !== 'None') {
    const message = `cannot adopt service ${quote(name)}: ClusterIP is ${quote(clusterIp)} (expected "None", field is immutable)`
    return { actions: [], error: message }
  }
  const { ports: _ports, ...spec } = service.spec ?? {}
  const ports = servicePorts(sandbox.spec.podTemplate.spec)
  const object: Service = {
    ...service,
    metadata: {
      ...service.metadata,
      labels: { ...service.metadata.labels, [labels.nameHash]: nameHash },
      ownerReferences: [...(service.metadata.ownerReferences ?? []), ownerReferenceTo(sandbox, Sandboxes)],
    },
    spec: { ...spec, selector: { [labels.nameHash]: nameHash }, ...(ports.length > 0 && { ports }) },
  }
  const failure = 'failed to update service with owner reference'
  return { found: service, actions: [{ kind: 'replace', child: 'service', object, failure }] }
}

function repair({ sandbox, nameHash }: ServiceWorld, service: Stored<Service>): ChildStep<Stored<Service>> {
  const currentPorts = service.spec?.ports ?? []
  const desiredPorts = servicePorts(sandbox.spec.podTemplate.spec)
  const portsDrifted = sandbox.spec.service === true && !samePorts(currentPorts, desiredPorts)
  const patch = mergeDiff(
    {
      metadata: { labels: { ...service.metadata.labels } },
      spec: { selector: service.spec?.selector ?? {}, ports: currentPorts },
    },
    {
      metadata: { labels: { ...service.metadata.labels, [labels.nameHash]: nameHash } },
      spec: { selector: { [labels.nameHash]: nameHash }, ports: portsDrifted ? desiredPorts : currentPorts },
    },
  )
  if (!patch) return { found: service, actions: [] }
  const failure = 'failed to patch owned service'
  const name = service.metadata.name
  return { found: service, actions: [{ kind: 'patch', child: 'service', name, patch, failure }] }
}

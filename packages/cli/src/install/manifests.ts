import { crdManifests } from '@corral/resources'
import { restrictedLabels } from '../platform/pod-security.js'
import { controllerObjects } from './controller-objects.js'
import type { InstallValues } from './install-values.js'
import { networkPolicies } from './network-policies.js'
import { sandboxObjects } from './sandbox-objects.js'
import {
  serverAccess,
  serverDeployment,
  serverDisruptionBudget,
  serverServices,
  serverVolume,
} from './server-objects.js'

export interface InstallParts {
  /** Our controllers; without them the cluster has upstream's. */
  controllers: boolean
}

/** Everything an installation consists of but its Secret, in the order in which it is applied. */
export function installManifests(values: InstallValues, { controllers }: InstallParts): object[] {
  return [
    namespaceObject(values.namespace),
    ...crds({ controllers }),
    ...serverAccess(values),
    ...(controllers ? controllerObjects(values) : []),
    ...networkPolicies(values),
    serverVolume(values),
    ...serverServices(values),
    serverDeployment(values),
    serverDisruptionBudget(values),
    ...sandboxObjects(values),
  ]
}

export function namespaceObject(name: string): object {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: restrictedLabels } }
}

/** The CRDs of Agent Sandbox belong to the installation of its controllers, which may not be ours; AgentTask is ours. */
function crds({ controllers }: InstallParts): object[] {
  return crdManifests('cluster').filter(({ spec }) => controllers || spec.group === 'corral.dev')
}

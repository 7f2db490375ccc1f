import * as core from './core-printers.js'
import type { TablePrinter } from './printer.js'
import * as workload from './workload-printers.js'

/** Printers by `group/Kind`; the core group has an empty name. */
const PRINTERS: Readonly<Record<string, TablePrinter>> = {
  '/Pod': core.podPrinter,
  '/Service': core.servicePrinter,
  '/Namespace': core.namespacePrinter,
  '/ConfigMap': core.configMapPrinter,
  '/Secret': core.secretPrinter,
  '/ServiceAccount': core.serviceAccountPrinter,
  '/PersistentVolumeClaim': core.claimPrinter,
  '/PersistentVolume': core.volumePrinter,
  '/Node': core.nodePrinter,
  '/Event': core.eventPrinter,
  '/Endpoints': core.endpointsPrinter,
  'events.k8s.io/Event': workload.eventsV1Printer,
  'autoscaling/Scale': workload.scalePrinter,
  'apps/Deployment': workload.deploymentPrinter,
  'apps/ReplicaSet': workload.replicaSetPrinter,
  'coordination.k8s.io/Lease': workload.leasePrinter,
  'networking.k8s.io/NetworkPolicy': workload.networkPolicyPrinter,
  'discovery.k8s.io/EndpointSlice': workload.endpointSlicePrinter,
  'policy/PodDisruptionBudget': workload.disruptionBudgetPrinter,
  'node.k8s.io/RuntimeClass': workload.runtimeClassPrinter,
  'storage.k8s.io/StorageClass': workload.storageClassPrinter,
  'apiextensions.k8s.io/CustomResourceDefinition': workload.createdAtPrinter,
  'rbac.authorization.k8s.io/Role': workload.createdAtPrinter,
  'rbac.authorization.k8s.io/ClusterRole': workload.createdAtPrinter,
  'rbac.authorization.k8s.io/RoleBinding': workload.roleBindingPrinter,
  'rbac.authorization.k8s.io/ClusterRoleBinding': workload.roleBindingPrinter,
  'admissionregistration.k8s.io/MutatingWebhookConfiguration': workload.webhookConfigurationPrinter,
  'admissionregistration.k8s.io/ValidatingWebhookConfiguration': workload.webhookConfigurationPrinter,
}

/** The printer of a built-in kind; Name and Age for kinds that have none of their own. */
export function builtInPrinter(group: string, kind: string): TablePrinter {
  return PRINTERS[`${group}/${kind}`] ?? core.defaultPrinter
}

import {
  ClusterRoleBindings,
  ClusterRoles,
  ConfigMaps,
  Deployments,
  EndpointsKind,
  Leases,
  MutatingWebhookConfigurations,
  Namespaces,
  NetworkPolicies,
  Nodes,
  PersistentVolumeClaims,
  PersistentVolumes,
  PodDisruptionBudgets,
  ReplicaSets,
  type ResourceKind,
  RoleBindings,
  Roles,
  Secrets,
  ServiceAccounts,
  StorageClasses,
  ValidatingWebhookConfigurations,
} from '@corral/resources'
import { crdKind } from '../crd/crd-kind.js'
import { forbiddenField, invalidValue } from '../errors/api-error.js'
import { equalJson, isJsonObject, type JsonObject } from '../objects/plain-json.js'
import { endpointSliceKind } from '../registry/endpoint-slice-kind.js'
import { eventKinds } from '../registry/event-kinds.js'
import { describeKind, type KindDefinition } from '../registry/kind-definition.js'
import { defaultPodSpec, podKind } from '../registry/pod-kind.js'
import { reviewKinds } from '../registry/review-kinds.js'
import { runtimeClassKind } from '../registry/runtime-class.js'
import { fieldReader, fieldReaders } from '../registry/selectable-fields.js'
import { serviceKind } from '../registry/service-kind.js'
import { bindingErrors, roleErrors } from '../validation/access-kinds.js'
import { defaultWebhook, taintErrors, volumeErrors, webhookErrors } from '../validation/cluster-kinds.js'
import {
  claimChangeErrors,
  configMapErrors,
  leaseErrors,
  secretErrors,
  storageClassErrors,
  volumeClaimErrors,
} from '../validation/data-kinds.js'
import { networkPolicyErrors, networkPolicyWarnings } from '../validation/network-policy.js'
import { errorsOfChange, objectOf, objectsIn } from '../validation/rules.js'
import { disruptionBudgetErrors, workloadErrors } from '../validation/workload.js'

/** Every kind the server has without any CustomResourceDefinition. */
export function builtinKinds(): KindDefinition[] {
  return [
    podKind,
    serviceKind,
    namespaceKind,
    configMapKind,
    secretKind,
    serviceAccountKind,
    ...volumeKinds,
    describeKind(Nodes, {
      shortNames: ['no'],
      hasStatus: true,
      validate: (next, old) => errorsOfChange(next, old, ['spec'], () => taintErrors(objectOf(next.spec))),
      selectable: { 'spec.unschedulable': (node) => String(fieldReader('spec.unschedulable')(node) === 'true') },
    }),
    describeKind(EndpointsKind, {
      shortNames: ['ep'],
      createsOnUpdate: true,
      warning: 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice',
      warnsOnRead: true,
    }),
    ...eventKinds,
    describeKind(Leases, {
      needsVersionOnUpdate: true,
      createsOnUpdate: true,
      validate: (next) => leaseErrors(objectOf(next.spec)),
    }),
    describeKind(NetworkPolicies, {
      shortNames: ['netpol'],
      generation: 'spec',
      validate: (next, old) => errorsOfChange(next, old, ['spec'], () => networkPolicyErrors(objectOf(next.spec))),
      defaults(policy) {
        const spec = isJsonObject(policy.spec) ? policy.spec : {}
        policy.spec = spec
        spec.podSelector ??= {}
        spec.policyTypes ??= Array.isArray(spec.egress) ? ['Ingress', 'Egress'] : ['Ingress']
        for (const rule of [...objectsIn(spec.ingress), ...objectsIn(spec.egress)])
          for (const port of objectsIn(rule.ports)) port.protocol ??= 'TCP'
      },
      warnings: (policy) => networkPolicyWarnings(objectOf(policy.spec)),
    }),
    endpointSliceKind,
    runtimeClassKind,
    crdKind,
    ...inertKinds,
    ...reviewKinds,
  ]
}

const namespaceKind = describeKind(Namespaces, {
  shortNames: ['ns'],
  hasStatus: true,
  nameRule: 'label',
  answersDeleteWithObject: true,
  verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
  subresources: [{ name: 'finalize', group: '', version: 'v1', kind: 'Namespace', verbs: ['update'] }],
  selectable: fieldReaders('status.phase'),
  defaults: labelWithName,
  prepareCreate(namespace) {
    namespace.spec = { ...(isJsonObject(namespace.spec) ? namespace.spec : {}), finalizers: ['kubernetes'] }
    namespace.status = { phase: 'Active' }
  },
  prepareUpdate(next, old) {
    next.spec = old.spec
  },
  validateStatus: (next) => {
    const { phase } = objectOf(next.status)
    if (objectOf(next.metadata).deletionTimestamp || phase === 'Active') return []
    const why = "may only be 'Active' if `deletionTimestamp` is empty"
    return [invalidValue('status.Phase', phase ?? '', why)]
  },
  prepareDelete(namespace) {
    const { deletionGracePeriodSeconds: _grace, ...metadata } = namespace.metadata as JsonObject
    return { ...namespace, metadata, status: { phase: 'Terminating' } }
  },
})

function labelWithName(namespace: JsonObject): void {
  const metadata = namespace.metadata as { name: string; labels?: Record<string, string> }
  metadata.labels = { ...metadata.labels, 'kubernetes.io/metadata.name': metadata.name }
}

const configMapKind = describeKind(ConfigMaps, {
  shortNames: ['cm'],
  validate: (next, old) => [
    ...frozenData(next, old, ['data', 'binaryData']),
    ...errorsOfChange(next, old, ['data', 'binaryData'], () => configMapErrors(next)),
  ],
})

const secretKind = describeKind(Secrets, {
  selectable: fieldReaders('type'),
  defaults(secret) {
    if (isJsonObject(secret.stringData)) {
      const encoded = Object.entries(secret.stringData).map(([key, value]) => [
        key,
        Buffer.from(String(value)).toString('base64'),
      ])
      secret.data = { ...(isJsonObject(secret.data) ? secret.data : {}), ...Object.fromEntries(encoded) }
    }
    delete secret.stringData
    secret.type ??= 'Opaque'
  },
  validate(next, old) {
    const errors = [
      ...frozenData(next, old, ['data']),
      ...errorsOfChange(next, old, ['data', 'type'], () => secretErrors(next)),
    ]
    if (old && next.type !== old.type) {
      errors.push({
        reason: 'FieldValueInvalid',
        field: 'type',
        message: `Invalid value: ${JSON.stringify(next.type)}: field is immutable`,
      })
    }
    return errors
  },
})

function frozenData(
  next: JsonObject,
  old: JsonObject | undefined,
  fields: string[],
): ReturnType<typeof forbiddenField>[] {
  if (old?.immutable !== true) return []
  const text = 'field is immutable when `immutable` is set'
  if (next.immutable !== true) return [forbiddenField('immutable', text)]
  return fields
    .filter((field) => !equalJson(next[field] ?? {}, old[field] ?? {}))
    .map((field) => forbiddenField(field, text))
}

const serviceAccountKind = describeKind(ServiceAccounts, {
  shortNames: ['sa'],
  answersDeleteWithObject: true,
  subresources: [
    { name: 'token', group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest', verbs: ['create'] },
  ],
})

const volumeKinds: KindDefinition[] = [
  describeKind(PersistentVolumeClaims, {
    shortNames: ['pvc'],
    hasStatus: true,
    answersDeleteWithObject: true,
    defaults(claim) {
      if (isJsonObject(claim.spec)) claim.spec.volumeMode ??= 'Filesystem'
    },
    validate: (next, old) => [
      ...errorsOfChange(next, old, ['spec'], () => volumeClaimErrors(objectOf(next.spec))),
      ...(old ? claimChangeErrors(next, old) : []),
    ],
    prepareCreate(claim, { defaultStorageClass }) {
      claim.status = { phase: 'Pending' }
      const { annotations } = objectOf(claim.metadata)
      if (!isJsonObject(claim.spec) || claim.spec.storageClassName !== undefined) return
      if (objectOf(annotations)['volume.beta.kubernetes.io/storage-class'] !== undefined) return
      const name = defaultStorageClass()
      if (name !== undefined) claim.spec.storageClassName = name
    },
  }),
  describeKind(PersistentVolumes, {
    shortNames: ['pv'],
    hasStatus: true,
    answersDeleteWithObject: true,
    defaults(volume) {
      if (!isJsonObject(volume.spec)) return
      volume.spec.volumeMode ??= 'Filesystem'
      volume.spec.persistentVolumeReclaimPolicy ??= 'Retain'
      if (isJsonObject(volume.spec.hostPath)) volume.spec.hostPath.type ??= ''
    },
    validate: (next, old) => errorsOfChange(next, old, ['spec'], () => volumeErrors(objectOf(next.spec))),
    prepareCreate(volume) {
      volume.status = { phase: 'Pending' }
    },
  }),
  describeKind(StorageClasses, {
    shortNames: ['sc'],
    answersDeleteWithObject: true,
    validate: storageClassErrors,
    defaults(storageClass) {
      storageClass.reclaimPolicy ??= 'Delete'
      storageClass.volumeBindingMode ??= 'Immediate'
    },
  }),
]

const INERT = 'is stored but not acted upon by this server'

function inert(kind: ResourceKind, options: Parameters<typeof describeKind>[1]): KindDefinition {
  return describeKind(kind, { ...options, warning: `${kind.kind} ${INERT}` })
}

const ACCESS = { nameRule: 'path', createsOnUpdate: true } as const

/** Kinds that install manifests need; nothing here carries them out. */
const inertKinds: KindDefinition[] = [
  inert(Deployments, {
    shortNames: ['deploy'],
    categories: ['all'],
    hasStatus: true,
    generation: 'spec',
    scale: { specReplicas: 'spec.replicas', statusReplicas: 'status.replicas' },
    subresources: [scaleRow()],
    validate: (next, old) => workloadErrors(next, old, 'deployment'),
    prepareCreate(deployment) {
      deployment.status = {}
    },
    defaults(deployment) {
      defaultWorkload(deployment)
      const spec = deployment.spec
      if (!isJsonObject(spec)) return
      spec.strategy ??= { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } }
      spec.revisionHistoryLimit ??= 10
      spec.progressDeadlineSeconds ??= 600
    },
  }),
  inert(ReplicaSets, {
    shortNames: ['rs'],
    categories: ['all'],
    hasStatus: true,
    generation: 'spec',
    scale: { specReplicas: 'spec.replicas', statusReplicas: 'status.replicas' },
    subresources: [scaleRow()],
    defaults: defaultWorkload,
    validate: (next, old) => workloadErrors(next, old, 'replica set'),
    prepareCreate(set) {
      set.status = { replicas: 0 }
    },
  }),
  inert(PodDisruptionBudgets, {
    shortNames: ['pdb'],
    hasStatus: true,
    generation: 'spec',
    validate: (next, old) => errorsOfChange(next, old, ['spec'], () => disruptionBudgetErrors(objectOf(next.spec))),
    prepareCreate(budget) {
      budget.status = { currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0 }
    },
  }),
  inert(Roles, { ...ACCESS, validate: (role) => roleErrors(role, true) }),
  inert(RoleBindings, {
    ...ACCESS,
    defaults: defaultSubjects,
    validate: (next, old) => bindingErrors(next, old, true),
  }),
  inert(ClusterRoles, { ...ACCESS, validate: (role) => roleErrors(role, false) }),
  inert(ClusterRoleBindings, {
    ...ACCESS,
    defaults: defaultSubjects,
    validate: (next, old) => bindingErrors(next, old, false),
  }),
  ...[ValidatingWebhookConfigurations, MutatingWebhookConfigurations].map((kind) =>
    inert(kind, {
      generation: 'content',
      categories: ['api-extensions'],
      defaults(configuration) {
        for (const webhook of objectsIn(configuration.webhooks))
          defaultWebhook(webhook, kind === MutatingWebhookConfigurations)
      },
      validate: (next, old) => errorsOfChange(next, old, ['webhooks'], () => webhookErrors(next)),
    }),
  ),
]

function scaleRow(): KindDefinition['subresources'][number] {
  return { name: 'scale', group: 'autoscaling', version: 'v1', kind: 'Scale', verbs: ['get', 'patch', 'update'] }
}

function defaultWorkload(workload: JsonObject): void {
  const spec = workload.spec
  if (!isJsonObject(spec)) return
  spec.replicas ??= 1
  if (isJsonObject(spec.template) && isJsonObject(spec.template.spec)) defaultPodSpec(spec.template.spec)
}

function defaultSubjects(binding: JsonObject): void {
  const roleRef = isJsonObject(binding.roleRef) ? binding.roleRef : {}
  binding.roleRef = roleRef
  roleRef.apiGroup ??= 'rbac.authorization.k8s.io'
  for (const subject of Array.isArray(binding.subjects) ? binding.subjects : []) {
    if (isJsonObject(subject) && subject.kind !== 'ServiceAccount') subject.apiGroup ??= 'rbac.authorization.k8s.io'
  }
}

/** The types Corral serves or reads; everything reachable from them goes into the generated files. */
const core = 'io.k8s.api.core.v1.'
const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1.'

const of = (prefix: string, names: string): string[] => names.split(' ').map((name) => prefix + name)

export const ROOTS: string[] = [
  ...of(
    core,
    'Pod Service ConfigMap Secret PersistentVolumeClaim PersistentVolume Namespace Node ServiceAccount Event Binding Endpoints PodTemplate',
  ),
  ...of('io.k8s.api.apps.v1.', 'Deployment ReplicaSet'),
  ...of('io.k8s.api.networking.v1.', 'NetworkPolicy'),
  ...of('io.k8s.api.coordination.v1.', 'Lease'),
  ...of('io.k8s.api.discovery.v1.', 'EndpointSlice'),
  ...of('io.k8s.api.events.v1.', 'Event'),
  ...of('io.k8s.api.policy.v1.', 'PodDisruptionBudget Eviction'),
  ...of('io.k8s.api.autoscaling.v1.', 'Scale'),
  ...of('io.k8s.api.storage.v1.', 'StorageClass'),
  ...of('io.k8s.api.node.v1.', 'RuntimeClass'),
  ...of('io.k8s.api.rbac.v1.', 'Role RoleBinding ClusterRole ClusterRoleBinding'),
  ...of('io.k8s.api.admissionregistration.v1.', 'ValidatingWebhookConfiguration MutatingWebhookConfiguration'),
  ...of('io.k8s.api.authentication.v1.', 'TokenReview TokenRequest SelfSubjectReview'),
  ...of(
    'io.k8s.api.authorization.v1.',
    'SelfSubjectAccessReview SubjectAccessReview LocalSubjectAccessReview SelfSubjectRulesReview',
  ),
  ...of('io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.', 'CustomResourceDefinition'),
  ...of(meta, 'DeleteOptions CreateOptions UpdateOptions PatchOptions ListOptions Status Condition LabelSelector'),
]

import type * as v1alpha1 from './agent-sandbox/v1alpha1.js'
import type { Sandbox, SandboxClaim, SandboxTemplate, SandboxWarmPool } from './agent-sandbox/v1beta1.js'
import type { AgentTask } from './agent-task.js'
import type { Environment } from './environment.js'
import type * as core from './generated/core-types.js'
import { defineKind, type ResourceKind } from './meta.js'
import type { Project } from './project.js'

/** API groups of the Agent Sandbox kinds and of Corral's own kinds. */
export const AGENTS_GROUP = 'agents.x-k8s.io'
export const EXTENSIONS_GROUP = 'extensions.agents.x-k8s.io'
export const CORRAL_GROUP = 'corral.dev'

export const Pods: ResourceKind<core.Pod> = defineKind('v1', 'Pod', 'pods')
export const Services: ResourceKind<core.Service> = defineKind('v1', 'Service', 'services')
export const ConfigMaps: ResourceKind<core.ConfigMap> = defineKind('v1', 'ConfigMap', 'configmaps')
export const Secrets: ResourceKind<core.Secret> = defineKind('v1', 'Secret', 'secrets')
export const PersistentVolumeClaims: ResourceKind<core.PersistentVolumeClaim> = defineKind(
  'v1',
  'PersistentVolumeClaim',
  'persistentvolumeclaims',
)
export const PersistentVolumes: ResourceKind<core.PersistentVolume> = defineKind(
  'v1',
  'PersistentVolume',
  'persistentvolumes',
  'Cluster',
)
export const Namespaces: ResourceKind<core.Namespace> = defineKind('v1', 'Namespace', 'namespaces', 'Cluster')
export const Nodes: ResourceKind<core.Node> = defineKind('v1', 'Node', 'nodes', 'Cluster')
export const ServiceAccounts: ResourceKind<core.ServiceAccount> = defineKind('v1', 'ServiceAccount', 'serviceaccounts')
/** Events as `v1` shows them. The same records appear under `events.k8s.io/v1` in another shape: `EventsV1`. */
export const Events: ResourceKind<core.Event> = defineKind('v1', 'Event', 'events')
export const EventsV1: ResourceKind<core.EventsV1Event> = defineKind('events.k8s.io/v1', 'Event', 'events')
/** `Endpoints` is its own plural, and the name of its type. */
export const EndpointsKind: ResourceKind<core.Endpoints> = defineKind('v1', 'Endpoints', 'endpoints')
export const Leases: ResourceKind<core.Lease> = defineKind('coordination.k8s.io/v1', 'Lease', 'leases')
export const NetworkPolicies: ResourceKind<core.NetworkPolicy> = defineKind(
  'networking.k8s.io/v1',
  'NetworkPolicy',
  'networkpolicies',
)
export const EndpointSlices: ResourceKind<core.EndpointSlice> = defineKind(
  'discovery.k8s.io/v1',
  'EndpointSlice',
  'endpointslices',
)
export const CustomResourceDefinitions: ResourceKind<core.CustomResourceDefinition> = defineKind(
  'apiextensions.k8s.io/v1',
  'CustomResourceDefinition',
  'customresourcedefinitions',
  'Cluster',
)
export const Deployments: ResourceKind<core.Deployment> = defineKind('apps/v1', 'Deployment', 'deployments')
export const ReplicaSets: ResourceKind<core.ReplicaSet> = defineKind('apps/v1', 'ReplicaSet', 'replicasets')
export const PodDisruptionBudgets: ResourceKind<core.PodDisruptionBudget> = defineKind(
  'policy/v1',
  'PodDisruptionBudget',
  'poddisruptionbudgets',
)
export const StorageClasses: ResourceKind<core.StorageClass> = defineKind(
  'storage.k8s.io/v1',
  'StorageClass',
  'storageclasses',
  'Cluster',
)

export const RuntimeClasses: ResourceKind<core.RuntimeClass> = defineKind(
  'node.k8s.io/v1',
  'RuntimeClass',
  'runtimeclasses',
  'Cluster',
)

const RBAC = 'rbac.authorization.k8s.io/v1'
export const Roles: ResourceKind<core.Role> = defineKind(RBAC, 'Role', 'roles')
export const RoleBindings: ResourceKind<core.RoleBinding> = defineKind(RBAC, 'RoleBinding', 'rolebindings')
export const ClusterRoles: ResourceKind<core.ClusterRole> = defineKind(RBAC, 'ClusterRole', 'clusterroles', 'Cluster')
export const ClusterRoleBindings: ResourceKind<core.ClusterRoleBinding> = defineKind(
  RBAC,
  'ClusterRoleBinding',
  'clusterrolebindings',
  'Cluster',
)

const ADMISSION = 'admissionregistration.k8s.io/v1'
export const ValidatingWebhookConfigurations: ResourceKind<core.ValidatingWebhookConfiguration> = defineKind(
  ADMISSION,
  'ValidatingWebhookConfiguration',
  'validatingwebhookconfigurations',
  'Cluster',
)
export const MutatingWebhookConfigurations: ResourceKind<core.MutatingWebhookConfiguration> = defineKind(
  ADMISSION,
  'MutatingWebhookConfiguration',
  'mutatingwebhookconfigurations',
  'Cluster',
)

const AUTHORIZATION = 'authorization.k8s.io/v1'
export const SelfSubjectAccessReviews: ResourceKind<core.SelfSubjectAccessReview> = defineKind(
  AUTHORIZATION,
  'SelfSubjectAccessReview',
  'selfsubjectaccessreviews',
  'Cluster',
)
export const SubjectAccessReviews: ResourceKind<core.SubjectAccessReview> = defineKind(
  AUTHORIZATION,
  'SubjectAccessReview',
  'subjectaccessreviews',
  'Cluster',
)
export const LocalSubjectAccessReviews: ResourceKind<core.LocalSubjectAccessReview> = defineKind(
  AUTHORIZATION,
  'LocalSubjectAccessReview',
  'localsubjectaccessreviews',
)
export const SelfSubjectRulesReviews: ResourceKind<core.SelfSubjectRulesReview> = defineKind(
  AUTHORIZATION,
  'SelfSubjectRulesReview',
  'selfsubjectrulesreviews',
  'Cluster',
)

const AUTHENTICATION = 'authentication.k8s.io/v1'
export const SelfSubjectReviews: ResourceKind<core.SelfSubjectReview> = defineKind(
  AUTHENTICATION,
  'SelfSubjectReview',
  'selfsubjectreviews',
  'Cluster',
)
export const TokenReviews: ResourceKind<core.TokenReview> = defineKind(
  AUTHENTICATION,
  'TokenReview',
  'tokenreviews',
  'Cluster',
)

/** The Agent Sandbox kinds in their storage version. */
export const Sandboxes: ResourceKind<Sandbox> = defineKind(`${AGENTS_GROUP}/v1beta1`, 'Sandbox', 'sandboxes')
export const SandboxClaims: ResourceKind<SandboxClaim> = defineKind(
  `${EXTENSIONS_GROUP}/v1beta1`,
  'SandboxClaim',
  'sandboxclaims',
)
export const SandboxTemplates: ResourceKind<SandboxTemplate> = defineKind(
  `${EXTENSIONS_GROUP}/v1beta1`,
  'SandboxTemplate',
  'sandboxtemplates',
)
export const SandboxWarmPools: ResourceKind<SandboxWarmPool> = defineKind(
  `${EXTENSIONS_GROUP}/v1beta1`,
  'SandboxWarmPool',
  'sandboxwarmpools',
)

/** The same kinds in the deprecated version, which only the embedded server serves. */
export const SandboxesV1alpha1: ResourceKind<v1alpha1.SandboxV1alpha1> = defineKind(
  `${AGENTS_GROUP}/v1alpha1`,
  'Sandbox',
  'sandboxes',
)
export const SandboxClaimsV1alpha1: ResourceKind<v1alpha1.SandboxClaimV1alpha1> = defineKind(
  `${EXTENSIONS_GROUP}/v1alpha1`,
  'SandboxClaim',
  'sandboxclaims',
)
export const SandboxTemplatesV1alpha1: ResourceKind<v1alpha1.SandboxTemplateV1alpha1> = defineKind(
  `${EXTENSIONS_GROUP}/v1alpha1`,
  'SandboxTemplate',
  'sandboxtemplates',
)
export const SandboxWarmPoolsV1alpha1: ResourceKind<v1alpha1.SandboxWarmPoolV1alpha1> = defineKind(
  `${EXTENSIONS_GROUP}/v1alpha1`,
  'SandboxWarmPool',
  'sandboxwarmpools',
)

export const AgentTasks: ResourceKind<AgentTask> = defineKind(`${CORRAL_GROUP}/v1alpha1`, 'AgentTask', 'agenttasks')
export const Projects: ResourceKind<Project> = defineKind(`${CORRAL_GROUP}/v1alpha1`, 'Project', 'projects')
export const Environments: ResourceKind<Environment> = defineKind(
  `${CORRAL_GROUP}/v1alpha1`,
  'Environment',
  'environments',
)

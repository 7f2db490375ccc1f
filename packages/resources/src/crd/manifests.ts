import type { z } from 'zod'
import * as alpha from '../agent-sandbox/v1alpha1.js'
import * as beta from '../agent-sandbox/v1beta1.js'
import { agentTaskSchema } from '../agent-task.js'
import { environmentSchema } from '../environment.js'
import type { CustomResourceDefinition, CustomResourceDefinitionVersion } from '../generated/core-types.js'
import { projectSchema } from '../project.js'
import { structuralSchemaFromZod } from './zod-schema.js'

/** `cluster`: what upstream 1.0 serves, plus AgentTask, Project and Environment. `embedded`: v1alpha1 of the sandbox kinds too. */
export type CrdSet = 'cluster' | 'embedded'

interface VersionPlan {
  schema: z.ZodType
  columns?: [name: string, type: string, jsonPath: string, priority?: number][]
  status?: boolean
  scale?: boolean
}

interface KindPlan {
  group: string
  kind: string
  plural: string
  shortNames: string[]
  storage: { name: string } & VersionPlan
  deprecated?: { name: string } & VersionPlan
}

const AGE: [string, string, string] = ['Age', 'date', '.metadata.creationTimestamp']
const ready = (member: string): string => `.status.conditions[?(@.type=='Ready')].${member}`
const POOL_COLUMNS: VersionPlan['columns'] = [
  ['Ready', 'integer', '.status.readyReplicas'],
  ['Desired', 'integer', '.spec.replicas'],
  AGE,
]

const KINDS: KindPlan[] = [
  {
    group: 'agents.x-k8s.io',
    kind: 'Sandbox',
    plural: 'sandboxes',
    shortNames: ['sandbox'],
    storage: {
      name: 'v1beta1',
      schema: beta.sandboxSchema,
      columns: [['Ready', 'string', ready('status')], ['Reason', 'string', ready('reason')], AGE],
      status: true,
    },
    deprecated: { name: 'v1alpha1', schema: alpha.sandboxV1alpha1Schema, status: true, scale: true },
  },
  {
    group: 'extensions.agents.x-k8s.io',
    kind: 'SandboxClaim',
    plural: 'sandboxclaims',
    shortNames: ['sandboxclaim'],
    storage: {
      name: 'v1beta1',
      schema: beta.sandboxClaimSchema,
      columns: [
        ['Ready', 'string', ready('status')],
        ['Sandbox', 'string', '.status.sandbox.name'],
        ['Reason', 'string', ready('reason')],
        AGE,
      ],
      status: true,
    },
    deprecated: { name: 'v1alpha1', schema: alpha.sandboxClaimV1alpha1Schema, status: true },
  },
  {
    group: 'extensions.agents.x-k8s.io',
    kind: 'SandboxTemplate',
    plural: 'sandboxtemplates',
    shortNames: ['sandboxtemplate'],
    storage: { name: 'v1beta1', schema: beta.sandboxTemplateSchema },
    deprecated: { name: 'v1alpha1', schema: alpha.sandboxTemplateV1alpha1Schema },
  },
  {
    group: 'extensions.agents.x-k8s.io',
    kind: 'SandboxWarmPool',
    plural: 'sandboxwarmpools',
    shortNames: ['swp'],
    storage: { name: 'v1beta1', schema: beta.sandboxWarmPoolSchema, columns: POOL_COLUMNS, status: true, scale: true },
    deprecated: {
      name: 'v1alpha1',
      schema: alpha.sandboxWarmPoolV1alpha1Schema,
      columns: POOL_COLUMNS,
      status: true,
      scale: true,
    },
  },
  {
    group: 'corral.dev',
    kind: 'AgentTask',
    plural: 'agenttasks',
    shortNames: ['agenttask', 'at'],
    storage: {
      name: 'v1alpha1',
      schema: agentTaskSchema,
      columns: [
        ['Phase', 'string', '.status.phase'],
        ['Agent', 'string', '.spec.agent.name'],
        ['Repo', 'string', '.spec.repository.url', 1],
        ['Branch', 'string', '.status.branch'],
        ['Project', 'string', '.spec.project', 1],
        ['Priority', 'integer', '.spec.priority', 1],
        AGE,
      ],
      status: true,
    },
  },
  {
    group: 'corral.dev',
    kind: 'Project',
    plural: 'projects',
    shortNames: ['proj'],
    storage: {
      name: 'v1alpha1',
      schema: projectSchema,
      columns: [
        ['Repo', 'string', '.spec.repository.url'],
        ['Base', 'string', '.spec.baseBranch'],
        ['Agent', 'string', '.spec.agent.name'],
        ['Model', 'string', '.spec.agent.model', 1],
        AGE,
      ],
    },
  },
  {
    group: 'corral.dev',
    kind: 'Environment',
    plural: 'environments',
    shortNames: ['envs'],
    storage: {
      name: 'v1alpha1',
      schema: environmentSchema,
      columns: [
        ['Repo', 'string', '.spec.repository.url'],
        ['Ref', 'string', '.spec.ref'],
        ['Built', 'string', ".status.conditions[?(@.type=='Built')].status"],
        ['Build', 'string', '.status.build.state'],
        ['Part', 'string', '.spec.part', 1],
        AGE,
      ],
      status: true,
    },
  },
]

/** The CRDs of a set, built anew: the caller owns them. */
export function crdManifests(set: CrdSet): CustomResourceDefinition[] {
  return KINDS.map((plan) => manifestOf(plan, set))
}

function manifestOf(plan: KindPlan, set: CrdSet): CustomResourceDefinition {
  const versions = [versionOf(plan.storage, { storage: true })]
  if (set === 'embedded' && plan.deprecated) {
    const { group, kind } = plan
    versions.push({
      ...versionOf(plan.deprecated, { storage: false }),
      deprecated: true,
      deprecationWarning: `${group}/${plan.deprecated.name} ${kind} is deprecated; use ${group}/${plan.storage.name} ${kind} instead`,
    })
  }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plan.plural}.${plan.group}` },
    spec: {
      group: plan.group,
      names: {
        kind: plan.kind,
        listKind: `${plan.kind}List`,
        plural: plan.plural,
        shortNames: [...plan.shortNames],
        singular: plan.kind.toLowerCase(),
      },
      scope: 'Namespaced',
      versions,
      ...(versions.length > 1 ? { conversion: conversionWebhook() } : {}),
    },
  }
}

/** The embedded server has converters for these kinds built in and never calls the service named here. */
function conversionWebhook(): NonNullable<CustomResourceDefinition['spec']['conversion']> {
  return {
    strategy: 'Webhook',
    webhook: {
      conversionReviewVersions: ['v1', 'v1beta1'],
      clientConfig: {
        service: { name: 'agent-sandbox-webhook-service', namespace: 'agent-sandbox-system', path: '/convert' },
      },
    },
  }
}

function versionOf(plan: { name: string } & VersionPlan, flags: { storage: boolean }): CustomResourceDefinitionVersion {
  return {
    name: plan.name,
    served: true,
    storage: flags.storage,
    schema: { openAPIV3Schema: structuralSchemaFromZod(plan.schema) },
    ...(plan.columns
      ? {
          additionalPrinterColumns: plan.columns.map(([name, type, jsonPath, priority]) => ({
            name,
            type,
            jsonPath,
            ...(priority === undefined ? {} : { priority }),
          })),
        }
      : {}),
    ...(plan.status
      ? {
          subresources: {
            status: {},
            ...(plan.scale
              ? {
                  scale: {
                    specReplicasPath: '.spec.replicas',
                    statusReplicasPath: '.status.replicas',
                    labelSelectorPath: '.status.selector',
                  },
                }
              : {}),
          },
        }
      : {}),
  }
}

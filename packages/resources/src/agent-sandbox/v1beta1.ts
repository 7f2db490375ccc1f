import * as z from 'zod'
import type { NetworkPolicyEgressRule, NetworkPolicyIngressRule } from '../generated/core-types.js'
import { conditionSchema, dateTime, int32, int64, kubernetesType, typeMeta } from '../schema-parts.js'
import { podMetadataSchema, podTemplateSchema, volumeClaimTemplatesSchema } from './common.js'

/** The Agent Sandbox kinds as upstream 1.0 defines them. A member with a CRD default stays optional in the type: readers
 * tolerate its absence. */

const blueprint = {
  podTemplate: podTemplateSchema,
  volumeClaimTemplates: volumeClaimTemplatesSchema.exactOptional(),
  /** Unset, true and false mean three different things to the controller. */
  service: z.boolean().exactOptional(),
}

export const sandboxSpecSchema = z
  .object({
    ...blueprint,
    shutdownTime: dateTime().exactOptional(),
    shutdownPolicy: z.enum(['Delete', 'Retain']).exactOptional().meta({ default: 'Retain' }),
    operatingMode: z.enum(['Running', 'Suspended']).exactOptional().meta({ default: 'Running' }),
  })
  .meta({
    'x-kubernetes-validations': [
      {
        rule: 'has(self.volumeClaimTemplates) == has(oldSelf.volumeClaimTemplates) && (!has(self.volumeClaimTemplates) || self.volumeClaimTemplates == oldSelf.volumeClaimTemplates)',
        message: 'volumeClaimTemplates is immutable',
      },
    ],
  })

export const sandboxStatusSchema = z.object({
  serviceFQDN: z.string().exactOptional(),
  service: z.string().exactOptional(),
  conditions: z.array(conditionSchema).exactOptional(),
  selector: z.string().exactOptional(),
  podIPs: z.array(z.string()).exactOptional(),
  nodeName: z.string().exactOptional(),
})

export const sandboxSchema = z.object({
  ...typeMeta('agents.x-k8s.io/v1beta1', 'Sandbox'),
  spec: sandboxSpecSchema,
  status: sandboxStatusSchema.exactOptional(),
})

export const claimEnvVarSchema = z.object({
  name: z.string(),
  value: z.string(),
  containerName: z.string().exactOptional(),
})

export const claimLifecycleSchema = z.object({
  shutdownTime: dateTime().exactOptional(),
  ttlSecondsAfterFinished: int32().min(0).exactOptional(),
  shutdownPolicy: z.enum(['Delete', 'DeleteForeground', 'Retain']).exactOptional().meta({ default: 'Retain' }),
})

export const sandboxClaimSpecSchema = z.object({
  warmPoolRef: z.object({ name: z.string() }),
  lifecycle: claimLifecycleSchema.exactOptional(),
  additionalPodMetadata: podMetadataSchema.exactOptional(),
  env: z.array(claimEnvVarSchema).exactOptional().meta({ 'x-kubernetes-list-type': 'atomic' }),
  volumeClaimTemplates: volumeClaimTemplatesSchema.exactOptional(),
})

export const sandboxClaimStatusSchema = z.object({
  conditions: z.array(conditionSchema).exactOptional(),
  sandbox: z
    .object({
      name: z.string().exactOptional(),
      podIPs: z.array(z.string()).exactOptional(),
      serviceFQDN: z.string().exactOptional(),
    })
    .exactOptional(),
})

export const sandboxClaimSchema = z.object({
  ...typeMeta('extensions.agents.x-k8s.io/v1beta1', 'SandboxClaim'),
  spec: sandboxClaimSpecSchema,
  status: sandboxClaimStatusSchema.exactOptional(),
})

export const templateNetworkPolicySchema = z.object({
  ingress: z
    .array(kubernetesType<NetworkPolicyIngressRule>('io.k8s.api.networking.v1.NetworkPolicyIngressRule'))
    .exactOptional(),
  egress: z
    .array(kubernetesType<NetworkPolicyEgressRule>('io.k8s.api.networking.v1.NetworkPolicyEgressRule'))
    .exactOptional(),
})

export const sandboxTemplateSpecSchema = z.object({
  ...blueprint,
  networkPolicy: templateNetworkPolicySchema.exactOptional(),
  networkPolicyManagement: z.enum(['Managed', 'Unmanaged']).exactOptional().meta({ default: 'Managed' }),
  envVarsInjectionPolicy: z
    .enum(['Allowed', 'Overrides', 'Disallowed'])
    .exactOptional()
    .meta({ default: 'Disallowed' }),
  volumeClaimTemplatesPolicy: z
    .enum(['Disallowed', 'Allowed', 'Overrides'])
    .exactOptional()
    .meta({ default: 'Disallowed' }),
})

export const sandboxTemplateSchema = z.object({
  ...typeMeta('extensions.agents.x-k8s.io/v1beta1', 'SandboxTemplate'),
  spec: sandboxTemplateSpecSchema,
})

export const sandboxWarmPoolSpecSchema = z.object({
  replicas: int32().min(0).exactOptional().meta({ default: 1 }),
  sandboxTemplateRef: z.object({ name: z.string() }),
  updateStrategy: z
    .object({ type: z.enum(['Recreate', 'OnReplenish']).exactOptional().meta({ default: 'OnReplenish' }) })
    .exactOptional(),
})

export const sandboxWarmPoolStatusSchema = z.object({
  replicas: int32().exactOptional(),
  readyReplicas: int32().exactOptional(),
  selector: z.string().exactOptional(),
  observedGeneration: int64().min(0).exactOptional(),
})

export const sandboxWarmPoolSchema = z.object({
  ...typeMeta('extensions.agents.x-k8s.io/v1beta1', 'SandboxWarmPool'),
  spec: sandboxWarmPoolSpecSchema,
  status: sandboxWarmPoolStatusSchema.exactOptional(),
})

export type Sandbox = z.infer<typeof sandboxSchema>
export type SandboxSpec = z.infer<typeof sandboxSpecSchema>
export type SandboxStatus = z.infer<typeof sandboxStatusSchema>
export type SandboxClaim = z.infer<typeof sandboxClaimSchema>
export type SandboxClaimSpec = z.infer<typeof sandboxClaimSpecSchema>
export type SandboxClaimStatus = z.infer<typeof sandboxClaimStatusSchema>
export type ClaimEnvVar = z.infer<typeof claimEnvVarSchema>
export type ClaimLifecycle = z.infer<typeof claimLifecycleSchema>
export type SandboxTemplate = z.infer<typeof sandboxTemplateSchema>
export type SandboxTemplateSpec = z.infer<typeof sandboxTemplateSpecSchema>
export type TemplateNetworkPolicy = z.infer<typeof templateNetworkPolicySchema>
export type SandboxWarmPool = z.infer<typeof sandboxWarmPoolSchema>
export type SandboxWarmPoolSpec = z.infer<typeof sandboxWarmPoolSpecSchema>
export type SandboxWarmPoolStatus = z.infer<typeof sandboxWarmPoolStatusSchema>

import * as z from 'zod'
import { int32, typeMeta } from '../schema-parts.js'
import {
  sandboxClaimSpecSchema,
  sandboxClaimStatusSchema,
  sandboxSpecSchema,
  sandboxStatusSchema,
  sandboxTemplateSpecSchema,
  sandboxWarmPoolSpecSchema,
  sandboxWarmPoolStatusSchema,
} from './v1beta1.js'

/** The deprecated version, stated as what differs from v1beta1. Only the embedded server serves it. */

export const sandboxV1alpha1SpecSchema = z.object({
  ...sandboxSpecSchema.omit({ operatingMode: true }).shape,
  replicas: int32().min(0).max(1).exactOptional().meta({ default: 1 }),
})

export const sandboxV1alpha1StatusSchema = z.object({
  ...sandboxStatusSchema.omit({ nodeName: true }).shape,
  replicas: int32().min(0).exactOptional(),
})

export const sandboxV1alpha1Schema = z.object({
  ...typeMeta('agents.x-k8s.io/v1alpha1', 'Sandbox'),
  spec: sandboxV1alpha1SpecSchema,
  status: sandboxV1alpha1StatusSchema.exactOptional(),
})

export const sandboxClaimV1alpha1SpecSchema = z.object({
  ...sandboxClaimSpecSchema.omit({ warmPoolRef: true, volumeClaimTemplates: true }).shape,
  sandboxTemplateRef: z.object({ name: z.string() }),
  /** `none`, `default`, or the name of a pool. */
  warmpool: z.string().exactOptional().meta({ default: 'default' }),
})

export const sandboxClaimV1alpha1Schema = z.object({
  ...typeMeta('extensions.agents.x-k8s.io/v1alpha1', 'SandboxClaim'),
  spec: sandboxClaimV1alpha1SpecSchema,
  status: sandboxClaimStatusSchema.exactOptional(),
})

export const sandboxTemplateV1alpha1Schema = z.object({
  ...typeMeta('extensions.agents.x-k8s.io/v1alpha1', 'SandboxTemplate'),
  spec: sandboxTemplateSpecSchema.omit({ volumeClaimTemplatesPolicy: true }),
})

export const sandboxWarmPoolV1alpha1Schema = z.object({
  ...typeMeta('extensions.agents.x-k8s.io/v1alpha1', 'SandboxWarmPool'),
  spec: z.object({ ...sandboxWarmPoolSpecSchema.shape, replicas: int32().min(0) }),
  status: sandboxWarmPoolStatusSchema.omit({ observedGeneration: true }).exactOptional(),
})

export type SandboxV1alpha1 = z.infer<typeof sandboxV1alpha1Schema>
export type SandboxClaimV1alpha1 = z.infer<typeof sandboxClaimV1alpha1Schema>
export type SandboxTemplateV1alpha1 = z.infer<typeof sandboxTemplateV1alpha1Schema>
export type SandboxWarmPoolV1alpha1 = z.infer<typeof sandboxWarmPoolV1alpha1Schema>

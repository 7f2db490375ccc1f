import * as z from 'zod'
import type { PersistentVolumeClaimSpec, PodSpec } from '../generated/core-types.js'
import { kubernetesType, stringMap } from '../schema-parts.js'

/** Labels and annotations only: the metadata a sandbox may put on its pod. */
export const podMetadataSchema = z.object({
  labels: stringMap().exactOptional(),
  annotations: stringMap().exactOptional(),
})

export const podTemplateSchema = z.object({
  metadata: podMetadataSchema.exactOptional(),
  spec: kubernetesType<PodSpec>('io.k8s.api.core.v1.PodSpec'),
})

export const volumeClaimTemplateSchema = z.object({
  metadata: podMetadataSchema.extend({ name: z.string().exactOptional() }).exactOptional(),
  spec: kubernetesType<PersistentVolumeClaimSpec>('io.k8s.api.core.v1.PersistentVolumeClaimSpec'),
})

export const volumeClaimTemplatesSchema = z
  .array(volumeClaimTemplateSchema)
  .meta({ 'x-kubernetes-list-type': 'atomic' })

export type PodMetadata = z.infer<typeof podMetadataSchema>
export type SandboxPodTemplate = z.infer<typeof podTemplateSchema>
export type VolumeClaimTemplate = z.infer<typeof volumeClaimTemplateSchema>

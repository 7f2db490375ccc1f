import * as z from 'zod'
import type { Condition, ConditionStatus, ObjectMeta } from './meta.js'
import { isTime } from './time.js'
import { validateKubernetesValue } from './validate-value.js'

/**
 * Pieces the kinds' schemas are made of. A schema serves three masters: it validates, its type is the kind's type, and
 * the CRD generator reads it; what only the CRD needs (defaults, list types) travels in `.meta()`.
 */

export const int32 = () => z.int32().meta({ format: 'int32' })
export const int64 = () => z.int().meta({ format: 'int64' })

/** An RFC 3339 instant, any offset, as Kubernetes accepts it. */
export const dateTime = () => z.string().refine(isTime, 'must be an RFC 3339 date-time').meta({ format: 'date-time' })

/** The name of another object. One that no object can have would be waited for without end. */
export const objectName = () =>
  z
    .string()
    .max(253)
    .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/)

export const stringMap = () => z.record(z.string(), z.string())

/** A value of a Kubernetes type by its OpenAPI name, checked against the field table. */
export const kubernetesType = <T>(name: string) =>
  z
    .custom<T>((value) => typeof value === 'object' && value !== null && !Array.isArray(value), 'must be an object')
    .superRefine((value, context) => {
      for (const issue of validateKubernetesValue(name, value)) {
        context.addIssue({ code: 'custom', path: issue.path, message: issue.message })
      }
    })
    .meta({ kubernetesType: name })

export const objectMetaSchema = z
  .custom<ObjectMeta>(
    (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    'must be an object',
  )
  .superRefine((value, context) => {
    for (const issue of validateKubernetesValue('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta', value)) {
      context.addIssue({ code: 'custom', path: issue.path, message: issue.message })
    }
  })
  .meta({ type: 'object' })

const conditionStatusSchema: z.ZodType<ConditionStatus> = z.enum(['True', 'False', 'Unknown'])

const QUALIFIED_CONDITION_TYPE =
  /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$/

export const conditionSchema: z.ZodType<Condition> = z.object({
  type: z.string().max(316).regex(QUALIFIED_CONDITION_TYPE),
  status: conditionStatusSchema,
  reason: z
    .string()
    .min(1)
    .max(1024)
    .regex(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/),
  message: z.string().max(32768),
  lastTransitionTime: dateTime(),
  observedGeneration: int64().min(0).exactOptional(),
})

/** The four members every object has; `spec` and `status` come from the kind. */
export const typeMeta = <const V extends string, const K extends string>(apiVersion: V, kind: K) => ({
  apiVersion: z.literal(apiVersion).exactOptional().meta({ openMember: true }),
  kind: z.literal(kind).exactOptional().meta({ openMember: true }),
  metadata: objectMetaSchema.exactOptional(),
})

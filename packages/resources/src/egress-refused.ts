import * as z from 'zod'

/** The annotation in which a node keeps what of the network it refused to a pod. */
export const egressRefusedAnnotation = 'corral.dev/egress-refused'

const refusedHostSchema = z.object({
  host: z.string().max(253),
  /** Known when the name is granted: one that is not is refused before any port is asked for. */
  port: z.number().int().optional(),
  reason: z.enum(['NotAllowed', 'TooManyNames', 'Unresolved', 'ForbiddenAddress', 'Unreachable']),
  count: z.number().int(),
  /** The process that asked first, such as `node install.mjs`, where it could be seen. */
  process: z.string().max(140).optional(),
  firstAt: z.string(),
  lastAt: z.string(),
})

const egressRefusedSchema = z.object({
  refused: z.array(refusedHostSchema).max(64),
  /** Questions for names beyond those listed. */
  otherHosts: z.number().int(),
  /** Connections refused because too many were open at once. */
  refusedConnections: z.number().int(),
})

/** A destination a pod asked for and did not get, with the number of times. */
export type RefusedHost = z.infer<typeof refusedHostSchema>
export type EgressRefused = z.infer<typeof egressRefusedSchema>

export function writeEgressRefused(value: EgressRefused): string {
  return JSON.stringify(egressRefusedSchema.parse(value))
}

/** What the annotation says; undefined when it is absent or not what a node writes. */
export function readEgressRefused(
  annotations: Readonly<Record<string, string>> | undefined,
): EgressRefused | undefined {
  const text = annotations?.[egressRefusedAnnotation]
  if (text === undefined) return undefined
  try {
    return egressRefusedSchema.parse(JSON.parse(text))
  } catch {
    // Every client that may write the pod may have written this: it explains, and nothing is decided by it.
    return undefined
  }
}

import * as z from 'zod'

/** The annotation in which a node keeps how often the kernel ended a process of a pod for want of memory. */
export const oomKillsAnnotation = 'corral.dev/oom-kills'

const oomKillsSchema = z.object({
  kills: z.number().int().positive(),
  lastAt: z.iso.datetime(),
})

/** Processes of a pod that the kernel has ended for want of memory, whether or not a container ended with them. */
export type OomKills = z.infer<typeof oomKillsSchema>

export function writeOomKills(value: OomKills): string {
  return JSON.stringify(oomKillsSchema.parse(value))
}

/** What the annotation says; undefined when it is absent or not what a node writes. */
export function readOomKills(annotations: Readonly<Record<string, string>> | undefined): OomKills | undefined {
  const text = annotations?.[oomKillsAnnotation]
  if (text === undefined) return undefined
  try {
    return oomKillsSchema.parse(JSON.parse(text))
  } catch {
    // Every client that may write the pod may have written this: it explains, and nothing is decided by it.
    return undefined
  }
}

import type { MetricFamily } from './metric-families.js'

interface Telemetry {
  readonly families: ReadonlyMap<string, MetricFamily>
  readonly spans: readonly string[]
}

/** Families that only a Go program can have, and what ours shows instead. */
const meant: readonly { family: RegExp; why: string }[] = [
  { family: /^rest_client_request_retries_total$/, why: 'a run without a retry has no series, and so no labels' },
  { family: /^go_/, why: 'figures of the Go runtime; ours shows `nodejs_*`' },
]

/** Every family, label, bucket and kind of span of upstream that ours lacks or has otherwise. */
export function unlikeUpstream(ours: Telemetry, theirs: Telemetry): { unexplained: string[]; explained: string[] } {
  const unexplained: string[] = []
  const explained: string[] = []
  for (const [name, family] of theirs.families) {
    const reason = meant.find((entry) => entry.family.test(name))?.why
    for (const difference of compare(ours.families.get(name), family))
      if (reason) explained.push(`${difference}: ${reason}`)
      else unexplained.push(difference)
  }
  for (const span of theirs.spans) if (!ours.spans.includes(span)) unexplained.push(`no span like: ${span}`)
  for (const span of ours.spans)
    if (!theirs.spans.includes(span)) unexplained.push(`upstream has no span like: ${span}`)
  return { unexplained, explained }
}

function compare(ours: MetricFamily | undefined, theirs: MetricFamily): string[] {
  if (!ours) return [`no ${theirs.type} ${theirs.name}{${theirs.labels.join()}}`]
  const parts = (['type', 'labels', 'buckets'] as const).filter((key) => String(ours[key]) !== String(theirs[key]))
  return parts.map((key) => `${theirs.name}: ${key} ${String(ours[key])} instead of ${String(theirs[key])}`)
}

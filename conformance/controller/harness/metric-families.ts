/** What a scrape says about a family besides its numbers. */
export interface MetricFamily {
  readonly name: string
  readonly type: string
  /** Sorted; `le` and `quantile` are part of the type. */
  readonly labels: readonly string[]
  /** Upper bounds of a histogram. */
  readonly buckets: readonly number[]
}

/** Reads the families of a Prometheus text exposition, with the labels of whatever series they have. */
export function metricFamilies(text: string): Map<string, MetricFamily> {
  const types = new Map<string, string>()
  const labels = new Map<string, Set<string>>()
  const buckets = new Map<string, Set<number>>()
  for (const line of text.split('\n')) {
    const declared = /^# TYPE (\S+) (\S+)/.exec(line)
    if (declared) types.set(declared[1] ?? '', declared[2] ?? '')
    const sample = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? /.exec(line)
    if (!sample) continue
    const family = [sample[1] ?? '', (sample[1] ?? '').replace(/_(bucket|sum|count)$/, '')].find((name) =>
      types.has(name),
    )
    if (family === undefined) continue
    const seen = labels.get(family) ?? labels.set(family, new Set()).get(family)!
    for (const [, label = '', value = ''] of (sample[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      if (label === 'le' && value !== '+Inf')
        (buckets.get(family) ?? buckets.set(family, new Set()).get(family)!).add(Number(value))
      if (label !== 'le' && label !== 'quantile') seen.add(label)
    }
  }
  return new Map(
    [...types].map(([name, type]) => [
      name,
      {
        name,
        type,
        labels: [...(labels.get(name) ?? [])].sort(),
        buckets: [...(buckets.get(name) ?? [])].sort((a, b) => a - b),
      },
    ]),
  )
}

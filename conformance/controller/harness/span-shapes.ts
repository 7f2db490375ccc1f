import type { CollectedSpan } from '../../../tools/otlp/collector.js'

/**
 * Kinds of spans, each once: name, whose child it is, names of attributes and events. Numbers of spans differ from run to
 * run; what kinds there are does not.
 */
export function spanShapes(spans: readonly CollectedSpan[]): string[] {
  const byId = new Map(spans.map((span) => [span.spanId, span]))
  const keys = (attributes: Readonly<Record<string, string>>): string => Object.keys(attributes).sort().join(',')
  const shape = (span: CollectedSpan): string => {
    const parent = byId.get(span.parentId)
    const below = span.parentId === '' ? 'root' : `below ${parent?.name ?? 'a span that was not sent'}`
    const events = [...new Set(span.events.map(({ name, attributes }) => `${name}(${keys(attributes)})`))].sort()
    return `${span.service}/${span.tracer} ${span.name}(${keys(span.attributes)}) ${below} events [${events.join(' ')}]`
  }
  return [...new Set(spans.map(shape))].sort()
}

import { type LogFields, type SpanRecord, silentLogger } from '@corral/ports'
import { startTraceCollector, waitUntil } from '@corral/testing'
import { describe, expect, it } from 'vitest'
import { otlpTarget, startOtlpExporter } from './otlp-spans.js'

const endpoint = 'http://collector:4318'

describe('where spans go', () => {
  it.each<[what: string, env: NodeJS.ProcessEnv, url: string | undefined]>([
    ['nowhere without a collector', {}, undefined],
    ['to the path for traces of an endpoint', { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }, `${endpoint}/v1/traces`],
    ['not to two slashes', { OTEL_EXPORTER_OTLP_ENDPOINT: `${endpoint}/` }, `${endpoint}/v1/traces`],
    ['to an endpoint of traces as it is', { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${endpoint}/x` }, `${endpoint}/x`],
    ['nowhere where it is off', { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: 'true' }, undefined],
    ['nowhere without traces', { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_EXPORTER: 'none' }, undefined],
  ])('%s', (_, env, url) => expect(otlpTarget(env)?.url).toBe(url))

  it('takes headers and the name of the service from the standard variables', () => {
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20x, a=b=c,broken=%E0,',
      OTEL_SERVICE_NAME: 'ours',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test',
    }
    expect(otlpTarget(env)).toMatchObject({
      headers: { authorization: 'Bearer x', a: 'b=c', broken: '%E0' },
      resource: { 'service.name': 'ours', 'deployment.environment': 'test' },
    })
  })
})

describe('an exporter', () => {
  const span = (name: string): SpanRecord => ({
    ...{
      traceId: 'a'.repeat(32),
      spanId: 'b'.repeat(16),
      name,
      startMs: 1_700_000_000_001.4,
      endMs: 1_700_000_000_002,
    },
    attributes: { words: 'x', count: 3 },
  })
  const start = async () => {
    const collector = await startTraceCollector()
    const warnings: (LogFields | undefined)[] = []
    const log = { ...silentLogger, warn: (_: string, fields?: LogFields) => void warnings.push(fields) }
    const target = otlpTarget({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_HEADERS: 'k=v' })
    if (!target) throw new TypeError('there is a target')
    return { collector, warnings, exporter: startOtlpExporter(target, { log, closeMs: 120_000 }) }
  }

  it('sends what is left when it closes, as a collector reads it', async () => {
    const { collector, exporter } = await start()
    await using _ = collector
    exporter.sink({ ...span('one'), parentId: 'c'.repeat(16), error: 'Timeout' })
    exporter.sink(span('two'))
    await exporter.close()
    expect(collector.exports).toMatchObject([{ 'content-type': 'application/json', k: 'v' }])
    const common = { service: 'corral', startMs: 1_700_000_000_001, endMs: 1_700_000_000_002 }
    const attributes = { words: 'x', count: '3' }
    expect(collector.spans).toMatchObject([
      { ...common, name: 'one', parentId: 'c'.repeat(16), error: 'Timeout', attributes },
      { ...common, name: 'two', parentId: undefined, error: undefined, attributes },
    ])
  })

  it('keeps spans while the collector is away, and warns once', async () => {
    const { collector, exporter, warnings } = await start()
    await using _ = collector
    collector.status = 503
    exporter.sink(span('one'))
    await waitUntil('it was tried twice', () => collector.exports.length >= 2)
    collector.status = 200
    await exporter.close()
    expect(collector.spans.map(({ name }) => name)).toEqual(['one'])
    expect(warnings).toHaveLength(1)
  })

  it('forgets the oldest of more than it can keep, and ends although nobody answers', async () => {
    const { collector, exporter } = await start()
    await using _ = collector
    for (let index = 0; index < 4_100; index += 1) exporter.sink(span(String(index)))
    await exporter.close()
    expect([collector.spans.length, collector.spans[0]?.name]).toEqual([4_096, '4'])
    collector.status = 503
    exporter.sink(span('lost'))
    await exporter.close()
    expect(collector.spans).toHaveLength(4_096)
  })
})

import { describe, expect, it } from 'vitest'
import { newSpan, parseTraceparent, traceAnnotations, traceContextAnnotation, traceOf } from './trace-context.js'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const spanId = 'b7ad6b7169203331'

describe('a traceparent', () => {
  it.each<[what: string, header: string | undefined, read: object | undefined]>([
    ['that is kept', `00-${traceId}-${spanId}-01`, { traceId, spanId, isSampled: true }],
    ['that nobody keeps', `00-${traceId}-${spanId}-00`, { traceId, spanId, isSampled: false }],
    ['with more flags', `00-${traceId}-${spanId}-03`, { traceId, spanId, isSampled: true }],
    ['that is not there', undefined, undefined],
    ['of zeros', `00-${'0'.repeat(32)}-${spanId}-01`, undefined],
    ['without a span', `00-${traceId}-${'0'.repeat(16)}-01`, undefined],
    ['of another version', `ff-${traceId}-${spanId}-01`, undefined],
    ['with something behind it', `00-${traceId}-${spanId}-01-x`, undefined],
    ['in capitals', `00-${traceId.toUpperCase()}-${spanId}-01`, undefined],
  ])('%s', (_, header, read) => expect(parseTraceparent(header)).toEqual(read))
})

describe('the trace of an object', () => {
  const annotated = (text: string): object => ({ metadata: { annotations: { [traceContextAnnotation]: text } } })

  it('is what the annotations of its maker say', () => {
    const span = newSpan(undefined)
    expect(traceOf({ metadata: { annotations: traceAnnotations(span) } })).toEqual(span)
    expect(traceAnnotations(undefined)).toEqual({})
  })

  it.each(['', 'null', '7', '[]', '{"traceparent":7}', '{"traceparent":"x"}', '{"trace'])('is none for %s', (text) =>
    expect(traceOf(annotated(text))).toBeUndefined(),
  )

  it('goes on in a span of its own', () => {
    const parent = { traceId, spanId, isSampled: false }
    const next = newSpan(parent)
    expect(next).toMatchObject({ traceId, isSampled: false })
    expect(next.spanId).not.toBe(spanId)
  })
})

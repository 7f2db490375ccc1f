import { type Span, type TracerProvider, trace } from '@opentelemetry/api'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { Telemetry } from './telemetry.js'

interface Recorded {
  name: string
  attributes: unknown
  status?: unknown
  exceptions: number
  isEnded: boolean
}

let spans: Recorded[]
let telemetry: Telemetry

/** A provider that notes what it is told. */
function provider(): TracerProvider {
  const span = (recorded: Recorded): Span =>
    ({
      recordException: () => {
        recorded.exceptions += 1
      },
      setStatus: (status: unknown) => {
        recorded.status = status
      },
      end: () => {
        recorded.isEnded = true
      },
    }) as unknown as Span
  const startActiveSpan = (name: string, { attributes }: { attributes: unknown }, call: (span: Span) => unknown) => {
    const recorded: Recorded = { name, attributes, exceptions: 0, isEnded: false }
    spans.push(recorded)
    return call(span(recorded))
  }
  return { getTracer: () => ({ startActiveSpan }) } as unknown as TracerProvider
}

beforeEach(async () => {
  spans = []
  telemetry = new Telemetry()
  await telemetry.load()
})
afterEach(() => trace.disable())

it('68: a call is a span with its attributes, and a failure marks it and goes on to the caller', async () => {
  trace.setGlobalTracerProvider(provider())
  expect(await telemetry.span('sandbox.exec', { 'sandbox.command.executable': 'make' }, async () => 7)).toBe(7)
  const failure = Object.assign(new Error('gone'), { code: 'SandboxDeleted' })
  await expect(telemetry.span('sandbox.create', {}, () => Promise.reject(failure))).rejects.toBe(failure)
  expect(spans).toEqual([
    { name: 'sandbox.exec', attributes: { 'sandbox.command.executable': 'make' }, exceptions: 0, isEnded: true },
    {
      name: 'sandbox.create',
      attributes: {},
      exceptions: 1,
      isEnded: true,
      status: expect.objectContaining({ message: 'SandboxDeleted' }),
    },
  ])
})

it('68: without a provider everything works as before', async () => {
  expect(await telemetry.span('sandbox.exec', {}, async () => 'done')).toBe('done')
  expect(telemetry.headers()).toEqual({})
})

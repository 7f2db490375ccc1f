import { silentLogger, systemClock } from '@corral/ports'
import type { EventsV1Event, KubeObject, Stored } from '@corral/resources'
import { expect, it } from 'vitest'
import type { KubeClient } from '../kube-client.js'
import { eventSink } from './event-sink.js'

it('a long note is cut to the bytes the API takes, between two characters', async () => {
  const sent: EventsV1Event[] = []
  const client = { create: async (_kind: unknown, event: EventsV1Event) => void sent.push(event) }
  const sink = eventSink({
    client: client as unknown as KubeClient,
    clock: systemClock,
    log: silentLogger,
    instance: 'i',
  })
  const metadata = {
    name: 'box',
    namespace: 'default',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
  }
  const box: Stored<KubeObject> = { apiVersion: 'agents.x-k8s.io/v1beta1', kind: 'Sandbox', metadata }
  sink.recorder('c').record(box, { type: 'Warning', reason: 'R', action: 'A', note: `x${'é'.repeat(1024)}` })
  await sink.drain()
  expect(sent[0]?.note).toBe(`x${'é'.repeat(511)}`)
})

it('repeats of an event of the core group raise the count of the first, and only after it was created', async () => {
  const sent: string[] = []
  const client = {
    async create(_kind: unknown, event: { message?: string }) {
      await new Promise((resolve) => setImmediate(resolve))
      sent.push(`create ${event.message}`)
    },
    async patch(_kind: unknown, _ref: unknown, { body }: { body: { count: number } }) {
      sent.push(`count ${body.count}`)
    },
  }
  const ports = { client: client as unknown as KubeClient, clock: systemClock, log: silentLogger }
  const sink = eventSink({ ...ports, instance: 'node-1', api: 'v1' })
  const metadata = { name: 'p', namespace: 'n', uid: 'u', resourceVersion: '1', creationTimestamp: '' }
  const pod: Stored<KubeObject> = { apiVersion: 'v1', kind: 'Pod', metadata }
  const note = { type: 'Warning', reason: 'BackOff', action: 'BackOff', note: 'again' } as const
  for (let repeat = 0; repeat < 3; repeat++) sink.recorder('corral-node').record(pod, note)
  await sink.drain()
  expect(sent).toEqual(['create again', 'count 2', 'count 3'])
})

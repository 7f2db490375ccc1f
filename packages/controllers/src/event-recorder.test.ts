import type { KubeClient } from '@corral/kube'
import { type EventsV1Event, type KubeObject, type Stored, silentLogger, systemClock } from '@corral/resources'
import { expect, it } from 'vitest'
import { eventSink } from './event-recorder.js'

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

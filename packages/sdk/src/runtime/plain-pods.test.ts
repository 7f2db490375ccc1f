import type { Sandbox } from '@corral/resources'
import { expect, it } from 'vitest'
import { PlainPods } from './plain-pods.js'

const startMs = Date.parse('2026-01-01T00:00:00Z')
const sandbox = ({ image = 'debian', readyAt = 0, isReady = true } = {}): Sandbox => ({
  metadata: { name: `s-${image}-${readyAt}` },
  spec: { podTemplate: { spec: { containers: [{ name: 'main', image }] } } },
  status: {
    conditions: [
      {
        type: 'Ready',
        status: isReady ? 'True' : 'False',
        reason: 'Test',
        message: '',
        lastTransitionTime: new Date(startMs + readyAt * 1000).toISOString(),
      },
    ],
  },
})

it.each<{ when: string; other: Sandbox; atSeconds: number; isPlain: boolean }>([
  { when: 'has the same pod and is as new', other: sandbox({ readyAt: 3 }), atSeconds: 5, isPlain: true },
  { when: 'has another image', other: sandbox({ image: 'node', readyAt: 3 }), atSeconds: 5, isPlain: false },
  { when: 'has had more time to begin', other: sandbox({ readyAt: 3 }), atSeconds: 6, isPlain: false },
  { when: 'is the one that refused, later', other: sandbox(), atSeconds: 3, isPlain: false },
  { when: 'comes more than a minute later', other: sandbox({ readyAt: 62 }), atSeconds: 63, isPlain: false },
  { when: 'is not Ready', other: sandbox({ readyAt: 3, isReady: false }), atSeconds: 4, isPlain: false },
])('after a pod refused two seconds after it was Ready, one that $when: plain $isPlain', (row) => {
  let nowMs = startMs + 2_000
  const pods = new PlainPods(() => nowMs)
  pods.add(sandbox())

  nowMs = startMs + row.atSeconds * 1_000

  expect(pods.has(row.other)).toBe(row.isPlain)
})

it('keeps the hundred newest', () => {
  const pods = new PlainPods(() => startMs)
  for (let index = 0; index < 101; index += 1) pods.add(sandbox({ image: `image-${index}` }))
  expect(pods.has(sandbox({ image: 'image-0' }))).toBe(false)
  expect(pods.has(sandbox({ image: 'image-1' }))).toBe(true)
  expect(pods.has(sandbox({ image: 'image-100' }))).toBe(true)
})

import { describe, expect, it } from 'vitest'
import { kubeletRoute, logOptions } from './kubelet-route.js'

describe('kubeletRoute', () => {
  const pod = { namespace: 'ns', name: 'p' }
  it.each([
    { path: '/healthz', is: { kind: 'health' } },
    { path: '/exec/ns/p/c', is: { kind: 'exec', pod, container: 'c' } },
    { path: '/exec/ns/p/uid/c', is: { kind: 'exec', pod: { ...pod, uid: 'uid' }, container: 'c' } },
    { path: '/attach/ns/p/c', is: { kind: 'attach', pod, container: 'c' } },
    { path: '/portForward/ns/p', is: { kind: 'portForward', pod } },
    { path: '/containerLogs/ns/p/c', is: { kind: 'logs', pod, container: 'c' } },
    { path: '/exec/ns/p', is: undefined },
    { path: '/exec/ns/p/u/c/more', is: undefined },
    { path: '/pods', is: undefined },
    { path: '/', is: undefined },
    { path: '/exec/ns/%zz/c', is: undefined },
  ])('reads $path', ({ path, is }) => {
    expect(kubeletRoute(path)).toEqual(is)
  })
})

it('reads log options and refuses what is no number', () => {
  const query = new URLSearchParams('follow=true&tailLines=5&timestamps=1&sinceTime=2026-01-01T00:00:00Z')
  expect(logOptions(query)).toEqual({
    follow: true,
    previous: false,
    timestamps: true,
    tailLines: 5,
    sinceTime: '2026-01-01T00:00:00Z',
  })
  expect(logOptions(new URLSearchParams('limitBytes=-1'))).toBeUndefined()
})

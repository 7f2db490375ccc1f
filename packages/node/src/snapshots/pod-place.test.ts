import type { Pod } from '@corral/resources'
import { expect, it } from 'vitest'
import { podPlace } from './pod-place.js'

const paths = { directory: '/d', home: '/d/home', tmp: '/d/tmp', logs: '/d/logs', hosts: '/d/hosts' }
const mount = (name: string, mountPath: string, more = {}) => ({ name, mountPath, ...more })
const pod: Pod = {
  spec: {
    containers: [
      {
        name: 'main',
        volumeMounts: [
          mount('work', '/workspace'),
          mount('part', '/workspace/part', { subPath: 'sub' }),
          mount('part', '/whole', { subPath: 'a/b' }),
          mount('part', '/out', { subPath: '../../..' }),
          mount('claim', '/data'),
          mount('memory', '/fast'),
          mount('work', '/named', { subPathExpr: '$(X)' }),
        ],
      },
    ],
    volumes: [
      { name: 'work', emptyDir: {} },
      { name: 'part', emptyDir: {} },
      { name: 'claim', persistentVolumeClaim: { claimName: 'c' } },
      { name: 'memory', emptyDir: { medium: 'Memory' } },
    ],
  },
}

it.each([
  { path: '/workspace/repo', place: { root: '/d/volumes/work', relative: 'repo' } },
  { path: '/workspace', place: { root: '/d/volumes/work', relative: '' } },
  { path: '/workspace/part/x', place: { root: '/d/volumes/part', relative: 'sub/x' } },
  { path: '/whole', place: { root: '/d/volumes/part', relative: 'a/b' } },
  { path: '/home/agent', place: { root: '/d/home', relative: '' } },
  { path: '/tmp/a/b', place: { root: '/d/tmp', relative: 'a/b' } },
])('$path of a pod is in a directory of its own', ({ path, place }) => {
  expect(podPlace(pod, paths, path)).toEqual(place)
})

it.each([
  { path: '/usr/lib', code: 'NotFound' },
  { path: '/workspaces', code: 'NotFound' },
  { path: '/data/x', code: 'NotMovable' },
  { path: '/fast/x', code: 'NotMovable' },
  { path: '/named', code: 'NotMovable' },
  { path: '/out/etc', code: 'Invalid' },
])('$path of a pod is not: $code', ({ path, code }) => {
  expect(() => podPlace(pod, paths, path)).toThrow(expect.objectContaining({ code }))
})

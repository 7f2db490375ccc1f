import { describe, expect, it } from 'vitest'
import { type DiskAction, type DiskPod, type DiskState, planDisk } from './disk-plan.js'
import type { PodUsage } from './pod-usage.js'
import { storageLimits } from './storage-limits.js'

const MiB = 2 ** 20
const roomy: DiskState = {
  freeBytes: 1000 * MiB,
  freeInodes: 1e6,
  lowBytes: 16 * MiB,
  lowInodes: 1000,
  reserveBytes: 16 * MiB,
  reserveInodes: 400,
  hasReserve: true,
}
const full = { ...roomy, freeBytes: 0 }
const low = { ...roomy, freeBytes: 10 * MiB }

const used = (mebibytes: number, inodes = 10): PodUsage => ({
  total: { bytes: mebibytes * MiB, inodes },
  parts: {},
  tookMs: 0,
})
const limits = (graceSeconds?: number) =>
  storageLimits({
    metadata: graceSeconds ? { annotations: { 'corral.dev/eviction-grace-seconds': `${graceSeconds}` } } : {},
    spec: { containers: [{ name: 'c', resources: { limits: { 'ephemeral-storage': '100Mi' } } }] },
  })
const pod = (uid: string, part: Partial<DiskPod> = {}): DiskPod => ({
  uid,
  containers: [{ name: 'c', request: '0' }],
  limits: limits(),
  isFresh: true,
  isOver: false,
  isCleared: false,
  ...part,
})
const brief = (actions: readonly DiskAction[]): string[] =>
  actions.map((action) => ('uid' in action ? `${action.kind} ${action.uid}` : action.kind))

describe('what the disk needs', () => {
  const halted = { atMs: 0, message: 'too much' }
  it.each<{ when: string; disk?: DiskState; pods?: DiskPod[]; nowMs?: number; does: string[]; full?: boolean }>([
    { when: 'there is room and nothing is too large', pods: [pod('a', { usage: used(99) })], does: [] },
    { when: 'a pod is over its limit', pods: [pod('a', { usage: used(101) })], does: ['evict a'] },
    {
      when: 'a pod is over its limit whose work can be taken out',
      pods: [pod('a', { usage: used(101), limits: limits(60) })],
      does: ['halt a'],
    },
    {
      when: 'a halted pod has time left',
      pods: [pod('a', { usage: used(101), limits: limits(60), halted })],
      nowMs: 59_000,
      does: [],
    },
    {
      when: 'a halted pod is out of time',
      pods: [pod('a', { usage: used(50), limits: limits(60), halted })],
      nowMs: 60_000,
      does: ['evict a'],
    },
    {
      when: 'a halted pod goes on growing',
      pods: [pod('a', { usage: used(126), limits: limits(60), halted })],
      does: ['evict a'],
    },
    { when: 'a pod that is over takes much', pods: [pod('a', { usage: used(500), isOver: true })], does: [] },
    {
      when: 'the disk is low: the largest goes',
      disk: low,
      pods: [pod('a', { usage: used(20) }), pod('b', { usage: used(40) })],
      does: ['evict b'],
      full: true,
    },
    {
      when: 'the disk is full: the writer is stopped before the reserve is given away',
      disk: full,
      pods: [pod('a', { usage: used(20), limits: limits(60) })],
      does: ['halt a', 'releaseReserve'],
      full: true,
    },
    {
      when: 'the disk is low and nobody knows yet who takes it',
      disk: low,
      pods: [pod('a', { usage: used(20), isFresh: false }), pod('b', { isFresh: false })],
      does: ['measure a', 'measure b'],
      full: true,
    },
    {
      when: 'the disk is low and what is left of ended pods would do',
      disk: low,
      pods: [pod('a', { usage: used(20) }), pod('b', { isOver: true })],
      does: ['clear b'],
      full: true,
    },
    {
      when: 'the disk is low and one pod is on its way out',
      disk: low,
      pods: [pod('a', { usage: used(20), limits: limits(60), halted }), pod('b', { usage: used(30) })],
      does: [],
      full: true,
    },
    {
      when: 'the disk is full, the reserve is gone, and a halted pod still holds its space',
      disk: { ...full, hasReserve: false },
      pods: [pod('a', { usage: used(20), limits: limits(60), halted }), pod('b', { usage: used(30) })],
      does: ['evict a'],
      full: true,
    },
    {
      when: 'the disk is full of other things: a pod that takes next to nothing stays',
      disk: full,
      pods: [pod('a', { usage: used(1) })],
      does: ['releaseReserve'],
      full: true,
    },
    {
      when: 'inodes run out: the one with most files goes',
      disk: { ...roomy, freeInodes: 900 },
      pods: [pod('a', { usage: used(90, 10) }), pod('b', { usage: used(1, 5000) })],
      does: ['evict b'],
      full: true,
    },
    {
      when: 'inodes ran out and the reserve gave some back: the work of a halted pod is taken out with them',
      disk: { ...roomy, freeInodes: 390, hasReserve: false },
      pods: [pod('a', { usage: used(1, 5000), limits: limits(60), halted })],
      does: [],
      full: true,
    },
    {
      when: 'the inodes of the reserve are used up too',
      disk: { ...roomy, freeInodes: 40, hasReserve: false },
      pods: [pod('a', { usage: used(1, 5000), limits: limits(60), halted })],
      does: ['evict a'],
      full: true,
    },
    { when: 'there is room for the reserve again', disk: { ...roomy, hasReserve: false }, does: ['restoreReserve'] },
    {
      when: 'there is some room, but not for the reserve too',
      disk: { ...roomy, hasReserve: false, freeBytes: 33 * MiB },
      does: [],
    },
  ])('when $when', ({ disk = roomy, pods = [], nowMs = 0, does, full: isUnderPressure = false }) => {
    const decision = planDisk({ nowMs, disk, wasUnderPressure: false, pods })
    expect({ ...decision, actions: brief(decision.actions) }).toEqual({ actions: does, isUnderPressure })
  })

  it('stays under pressure until there is room to spare', () => {
    const at = (freeBytes: number): boolean =>
      planDisk({ nowMs: 0, disk: { ...roomy, freeBytes }, wasUnderPressure: true, pods: [] }).isUnderPressure
    expect([at(17 * MiB), at(31 * MiB), at(32 * MiB)]).toEqual([true, true, false])
  })

  it('says why as a kubelet does', () => {
    const [action] = planDisk({
      nowMs: 0,
      disk: low,
      wasUnderPressure: false,
      pods: [pod('a', { usage: used(40) })],
    }).actions
    expect(action).toMatchObject({
      message:
        'The node was low on resource: ephemeral-storage. Threshold quantity: 16Mi, available: 10Mi. ' +
        'Container c was using 40Mi, request is 0, has larger consumption of ephemeral-storage.',
    })
  })
})

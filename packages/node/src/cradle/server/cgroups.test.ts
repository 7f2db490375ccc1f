import { describe, expect, it } from 'vitest'
import { limitFiles, parseCgroupMounts, parseOwnCgroups, shareOfAll } from './cgroups.js'

const limits = { memoryBytes: 134_217_728, cpuMillis: 200, cpuWeightMillis: 250, pids: 64 }
const all = ['memory', 'pids', 'cpu']

describe('limitFiles', () => {
  it.each([
    {
      on: 'version 2, a cell',
      hierarchy: { version: 2 as const, controllers: all },
      hasChildren: false,
      files: [
        ['memory.max', '134217728'],
        ['memory.swap.max', '0'],
        ['memory.oom.group', '1'],
        ['pids.max', '64'],
        ['cpu.weight', '10'],
        ['cpu.max', '20000 100000'],
      ],
    },
    {
      on: 'version 1, memory',
      hierarchy: { version: 1 as const, controllers: ['memory'] },
      hasChildren: false,
      files: [
        ['memory.kmem.tcp.limit_in_bytes', '134217728'],
        ['memory.limit_in_bytes', '134217728'],
        ['memory.memsw.limit_in_bytes', '134217728'],
      ],
    },
    {
      on: 'version 1, cpu',
      hierarchy: { version: 1 as const, controllers: ['cpu'] },
      hasChildren: true,
      files: [
        ['cpu.shares', '256'],
        ['cpu.cfs_period_us', '100000'],
        ['cpu.cfs_quota_us', '20000'],
      ],
    },
    {
      on: 'the bare tree of a hybrid machine',
      hierarchy: { version: 2 as const, controllers: [] },
      hasChildren: false,
      files: [],
    },
  ])('writes for $on', ({ hierarchy, hasChildren, files }) => {
    expect(limitFiles(limits, hierarchy, { hasChildren })).toEqual(files)
  })
})

it.each([
  {
    on: 'version 1, two processors',
    version: 1 as const,
    controllers: ['cpu'],
    processors: 2,
    files: [['cpu.shares', '2048']],
  },
  {
    on: 'version 2, four processors',
    version: 2 as const,
    controllers: all,
    processors: 4,
    files: [['cpu.weight', '400']],
  },
  {
    on: 'a machine larger than the kernel has weights for',
    version: 2 as const,
    controllers: all,
    processors: 512,
    files: [['cpu.weight', '10000']],
  },
  { on: 'a hierarchy without it', version: 1 as const, controllers: ['memory'], processors: 2, files: [] },
])(
  'all pods together weigh as much as one process on each processor: $on',
  ({ version, controllers, processors, files }) => {
    expect(shareOfAll({ version, controllers }, processors)).toEqual(files)
  },
)

describe('reading the machine', () => {
  it('finds mounts of both versions', () => {
    const text =
      'tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n'
    expect(parseCgroupMounts(text)).toEqual([
      { path: '/sys/fs/cgroup/cpu', type: 'cgroup', options: ['rw', 'cpu'] },
      { path: '/sys/fs/cgroup/unified', type: 'cgroup2', options: ['rw'] },
    ])
  })

  it('finds our own group in each hierarchy', () => {
    const own = parseOwnCgroups('4:memory:/a:b\n2:cpu,cpuacct:/c\n0::/user.slice\n')
    expect([own.get('memory'), own.get('cpuacct'), own.get('')]).toEqual(['/a:b', '/c', '/user.slice'])
  })
})

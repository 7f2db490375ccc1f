import { describe, expect, it } from 'vitest'
import { etcContents } from '../../cradle/server/cell-files.js'
import type { LaunchPlan, PodPlan } from '../../isolation/isolation.js'
import { withHostPaths } from '../process/process-paths.js'
import { bwrapOptions, completeMounts } from './profile.js'

const pod: PodPlan = {
  podUid: 'uid',
  namespace: 'corral',
  name: 'pod',
  podIP: '100.64.0.9',
  hostname: 'pod',
  hostUid: 200_001,
  egress: [],
  services: [],
  limits: {},
  directory: '/data/pods/uid',
}
const plan: LaunchPlan = {
  podUid: 'uid',
  container: 'main',
  attempt: 0,
  argv: ['node', '/opt/app/main.mjs'],
  env: { HOME: '/home/agent', CONFIG: '/opt/app/etc:/tmp/x' },
  workingDir: '/opt/app',
  uid: 1000,
  gid: 1000,
  mounts: [{ source: '/data/app', target: '/opt/app', readOnly: true }],
  tmpfs: [{ target: '/scratch', sizeBytes: 1024 }],
  readOnlyRoot: true,
  limits: {},
  stdin: false,
  tty: false,
  logPath: '/data/log',
}
const own = { homeSource: '/data/pods/uid/home', tmpSource: '/data/pods/uid/tmp' }
const input = {
  pod,
  plan,
  host: { links: [{ name: 'bin', target: 'usr/bin' }], directories: [], etc: ['/etc/ssl'] },
  supervisor: { source: '/data/sup', target: '/run/corral/supervisor' },
  etcDirectory: '/data/etc',
  ...own,
  disableUserns: true,
  unshareNet: false,
}

describe('bwrapOptions', () => {
  it.each([
    '--unshare-user',
    '--unshare-pid',
    '--unshare-ipc',
    '--unshare-uts',
    '--unshare-cgroup-try',
    '--disable-userns',
    '--as-pid-1',
    '--die-with-parent',
    '--new-session',
    '--clearenv',
    '--cap-drop ALL',
    '--uid 1000',
    '--gid 1000',
    '--tmpfs /',
    '--proc /proc',
    '--dev /dev',
    '--remount-ro /',
    '--ro-bind /data/app /opt/app',
    '--size 1024 --tmpfs /scratch',
  ])('has %s', (flag) => {
    expect(` ${bwrapOptions(input).join(' ')} `).toContain(` ${flag} `)
  })

  it('binds nothing of the host but the toolchain, harmless files and what plan and pod own', () => {
    const options = bwrapOptions(input)
    const sources = options.filter((_, index) => /^--(ro-)?bind$/.test(options[index - 1] ?? ''))
    expect(sources.filter((path) => !path.startsWith('/data/')).sort()).toEqual(['/etc/ssl', '/usr'])
  })

  it('never writes a value of the environment into the arguments', () => {
    expect(bwrapOptions(input).join(' ')).not.toContain('/opt/app/etc')
  })
})

describe('completeMounts', () => {
  it('adds HOME and /tmp unless the plan brings its own, and mounts parents before children', () => {
    const mounts = [
      { source: '/a', target: '/home/agent/deep/er', readOnly: false },
      { source: '/b', target: '/tmp', readOnly: false },
    ]
    expect(completeMounts({ plan: { ...plan, mounts }, ...own }).map(({ target }) => target)).toEqual([
      '/tmp',
      '/home/agent',
      '/home/agent/deep/er',
    ])
  })
})

describe('etcContents', () => {
  it('names the user of the plan and the pod’s own address', () => {
    const files = etcContents(pod, { ...plan, uid: 1234, gid: 99 })
    expect(files.passwd).toContain('agent:x:1234:99:')
    expect(files.hosts).toContain('100.64.0.9 pod')
  })
})

describe('withHostPaths', () => {
  it('turns paths below mounts into host paths, where there are no mounts', () => {
    const seen = withHostPaths(plan, pod, own)
    expect(seen.argv).toEqual(['node', '/data/app/main.mjs'])
    expect(seen.workingDir).toBe('/data/app')
    expect(seen.env).toMatchObject({
      CONFIG: '/data/app/etc:/data/pods/uid/tmp/x',
      HOME: '/data/pods/uid/home',
      TMPDIR: '/data/pods/uid/tmp',
      CORRAL_DAEMON_SOCKET: '/data/pods/uid/run/8888.sock',
    })
  })
})

import { execFileSync } from 'node:child_process'
import { chownSync, existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bubblewrapIsolation, IsolationError, type IsolationOptions, processIsolation } from '@corral/node'
import type { SealRequest } from '@corral/ports'
import { Namespaces, type Pod, Pods, type Stored, snapshotAnnotation, snapshotCondition } from '@corral/resources'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hasPhase, isReady, type NodeUnderTest, nodeUnderTest } from './node-under-test.js'

const repo = '/workspace/repo'
const home = '/home/agent'
const volumes = [{ name: 'work', emptyDir: {} }]
const container = (
  command = 'test -z "$CORRAL_WORKSPACE" || cd "$CORRAL_WORKSPACE"; test -n "$CORRAL_WORKSPACE" || cd /workspace; trap "exit 0" TERM; while :; do sleep 0.1; rm end 2>/dev/null && exit 1; done',
) => ({
  name: 'main',
  image: 'busybox',
  command: ['sh', '-c', command],
  volumeMounts: [{ name: 'work', mountPath: '/workspace' }],
})
const attached = (pod: Pod) => pod.status?.conditions?.find(({ type }) => type === snapshotCondition)
const restarts = (pod: Pod): number => pod.status?.containerStatuses?.[0]?.restartCount ?? 0
const isAttached = (pod: Pod): boolean => attached(pod)?.status === 'True'

/** What a set-up leaves: files, a program, a link, a directory no other user may read. */
const setUp = `mkdir -p ${repo}/node_modules/a ${repo}/src ${home}/.cache && cd ${repo} &&
  for i in $(seq 20); do echo "file $i" > node_modules/a/$i; done &&
  echo one > src/one && ln -s src/one link && mkdir private && echo p > private/p && chmod 700 private &&
  echo '#!/bin/sh' > run && chmod 755 run && echo cached > ${home}/.cache/c && mkdir empty`

interface Tier {
  tier: string
  isolation: (options: IsolationOptions) => ReturnType<typeof bubblewrapIsolation>
  reason: 'Overlay' | 'Copied'
}
const tiers: Tier[] = [
  { tier: 'bubblewrap', isolation: bubblewrapIsolation, reason: 'Overlay' },
  { tier: 'process', isolation: processIsolation, reason: 'Copied' },
]

describe.each(tiers)('snapshots on the $tier tier', ({ tier, isolation, reason }) => {
  let node: NodeUnderTest
  const open = (dataDir: string) => isolation({ dataDir })
  const hasMounts = tier === 'bubblewrap'
  beforeAll(async () => {
    node = await nodeUnderTest(open)
  })
  afterAll(async () => {
    await node[Symbol.asyncDispose]()
  })

  /** On the tier without mounts a path of the pod is one of the host. */
  async function sh(name: string, script: string): Promise<string> {
    const text = hasMounts ? script : script.replaceAll('/workspace', '"$CORRAL_WORKSPACE"').replaceAll(home, '"$HOME"')
    const { exitCode, stdout, stderr } = await node.run(name, ['sh', '-ec', text])
    return exitCode === 0 ? stdout : `exit ${exitCode}: ${stdout}${stderr}`
  }
  async function build(name: string, script = setUp): Promise<Stored<Pod>> {
    await node.create(name, { containers: [container()], volumes })
    const pod = await node.until(name, isReady)
    expect(await sh(name, script)).toBe('')
    return pod
  }
  const seal = (pod: Stored<Pod>, name: string, more: Partial<SealRequest> = {}) =>
    node.agent.snapshots.seal({ podUid: pod.metadata.uid, name, paths: [repo, home], ...more })
  const remove = async (name: string): Promise<void> => {
    const pod = await node.client.find(Pods, { namespace: 'default', name })
    await node.client.delete(Pods, { namespace: 'default', name })
    await node.untilGone(name)
    // The directory goes after the object.
    const directory = join(node.dataDir, 'pods', pod?.metadata.uid ?? 'none')
    await expect.poll(() => existsSync(directory)).toBe(false)
  }
  const annotate = (name: string, snapshot: string) =>
    node.client.patch(
      Pods,
      { namespace: 'default', name },
      {
        type: 'merge',
        body: { metadata: { annotations: { [snapshotAnnotation]: snapshot } } },
      },
    )

  it('seals what a build left, ends its pod and shows the snapshot', async () => {
    const pod = await build('build')
    const info = await seal(pod, 'base', { labels: { key: 'k1' }, secrets: ['not-in-there', ''] })
    expect(info).toMatchObject({ name: 'base', namespace: 'default', paths: [repo, home], labels: { key: 'k1' } })
    expect(info.files).toBeGreaterThan(28)
    expect(info.bytes).toBeGreaterThan(20 * 4096)
    const ended = await node.until('build', hasPhase('Failed'))
    expect(ended.status).toMatchObject({ reason: 'Sealed', message: 'its directories become snapshot "base"' })
    expect(await seal(pod, 'base')).toEqual(info)
    expect(node.agent.snapshots.list()).toEqual([info])
    await remove('build')
    expect(node.agent.snapshots.find('base')).toEqual(info)
  })

  it('gives it to a pod that asks from the start', async () => {
    await node.create(
      'early',
      {
        containers: [container(`cat ${hasMounts ? repo : '$CORRAL_WORKSPACE/repo'}/src/one; exec sleep 900`)],
        volumes,
      },
      { annotations: { [snapshotAnnotation]: 'base' } },
    )
    const pod = await node.until('early', (found) => isReady(found) && isAttached(found))
    expect(attached(pod)).toMatchObject({ reason, message: expect.stringMatching(/^base: /) })
    await expect.poll(() => node.logs('early')).toBe('one\n')
    expect(node.agent.snapshots.inUse('base')).toEqual([pod.metadata.uid])
    await expect(node.agent.snapshots.remove('base')).rejects.toMatchObject({ code: 'InUse' })
    await remove('early')
    expect(node.agent.snapshots.inUse('base')).toEqual([])
  })

  it('gives it to a pod that runs, as its own files, and keeps what the pod does to them away from the others', async () => {
    await node.create('late', { containers: [container()], volumes })
    await node.until('late', isReady)
    await annotate('late', 'base')
    const pod = await node.until('late', isAttached)
    expect(attached(pod)?.reason).toBe(reason)
    expect(await sh('late', `cd ${repo}; cat src/one link; stat -c %U run private src/one | sort -u`)).toBe(
      `one\none\n${await sh('late', 'stat -c %U /workspace')}`,
    )
    const changes = `cd ${repo}; echo two > src/one; rm -r node_modules/a; mv private public; chmod 700 run; mkdir -p new/er
      echo n > new/er/n; rm ${home}/.cache/c; mv src sources; rmdir empty; cat sources/one public/p`
    expect(await sh('late', changes)).toBe('two\np\n')
    await node.create(
      'other',
      { containers: [container()], volumes },
      { annotations: { [snapshotAnnotation]: 'base' } },
    )
    await node.until('other', (found) => isReady(found) && isAttached(found))
    const look = `cd ${repo}; cat src/one private/p; ls node_modules/a | wc -l; stat -c %a run; ls -d new 2>&1 | wc -l; cat ${home}/.cache/c; ls`
    expect(await sh('other', look)).toMatch(/^one\np\n20\n755\n1\ncached\nempty\nlink\n/)
    await remove('other')
  })

  it('attaches it again when the container is started again, with what the pod had changed', async () => {
    // The process that holds the overlay is replaced when it is gone.
    if (hasMounts) for (const { pid } of holders(node.dataDir)) process.kill(pid, 'SIGKILL')
    await sh('late', 'touch /workspace/end')
    await node.until('late', (pod) => isReady(pod) && restarts(pod) > 0)
    expect(await sh('late', `cat ${repo}/sources/one ${repo}/link 2>&1 || true`)).toMatch(/^two\n/)
  })

  it('keeps the one a pod has when its annotation names another', async () => {
    await annotate('late', 'another')
    const pod = await node.until('late', (found) => attached(found)?.reason === 'AlreadyAttached')
    expect(attached(pod)).toMatchObject({ status: 'False', message: expect.stringContaining('the pod has "base"') })
    expect(await sh('late', `cat ${repo}/sources/one`)).toBe('two\n')
    await annotate('late', 'base')
    await node.until('late', isAttached)
  })

  it('is still there after the node and its cradle were killed', async () => {
    const before = restarts(await node.until('late', isReady))
    await node.agent.stop({ endPods: false })
    process.kill(Number(readFileSync(join(node.dataDir, 'cradle', 'cradle.pid'), 'utf8')), 'SIGKILL')
    await expect.poll(() => holders(node.dataDir), { timeout: 60_000 }).toEqual([])
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(node.dataDir)
    await node.restart({ endPods: false, isolation: open(node.dataDir) })
    await node.until('late', (pod) => isReady(pod) && isAttached(pod) && restarts(pod) > before)
    expect(await sh('late', `cat ${repo}/sources/one`)).toBe('two\n')
    await remove('late')
    expect(holders(node.dataDir)).toEqual([])
    expect(readdirSync(join(node.dataDir, 'pods'))).toEqual([])
  })

  it('waits, and says so, for a snapshot that is not there yet', async () => {
    await node.create(
      'waits',
      { containers: [container()], volumes },
      { annotations: { [snapshotAnnotation]: 'later' } },
    )
    const pod = await node.until('waits', (found) => attached(found)?.reason === 'NotFound')
    expect(pod.status?.phase).toBe('Pending')
    await seal(await build('build-later'), 'later')
    await node.until('waits', (found) => isReady(found) && isAttached(found))
    await Promise.all([remove('waits'), remove('build-later')])
    await node.agent.snapshots.remove('later')
    expect(readdirSync(join(node.dataDir, 'snapshots'))).toEqual(['base'])
  })

  it('does not mount where a link of the pod leads', async () => {
    if (!hasMounts) return
    await node.create('linked', { containers: [container()], volumes })
    await node.until('linked', isReady)
    expect(await sh('linked', 'ln -s /usr /workspace/repo')).toBe('')
    await annotate('linked', 'base')
    const pod = await node.until('linked', (found) => attached(found)?.status === 'False')
    expect(attached(pod)).toMatchObject({
      reason: 'Failed',
      message: expect.stringMatching(/\/workspace\/repo: .*(symbolic|directory)/),
    })
    expect(await sh('linked', 'rm /workspace/repo')).toBe('')
    await node.until('linked', isAttached)
    await remove('linked')
  })

  it('refuses a snapshot of another namespace', async () => {
    const where = { namespace: 'elsewhere', name: 'foreign' }
    await node.client.create(Namespaces, { metadata: { name: 'elsewhere' } })
    await node.client.create(Pods, {
      metadata: { ...where, annotations: { [snapshotAnnotation]: 'base' } },
      spec: { containers: [container()], volumes, nodeName: 'node-under-test', terminationGracePeriodSeconds: 0 },
    })
    await expect
      .poll(async () => attached((await node.client.find(Pods, where)) ?? {})?.reason, { timeout: 240_000 })
      .toBe('Forbidden')
    await node.client.delete(Pods, where)
    await expect.poll(() => node.client.find(Pods, where), { timeout: 240_000 }).toBe(undefined)
  })

  it.each<{ when: string; request: Partial<SealRequest>; code: string; message: RegExp }>([
    { when: 'a name leads elsewhere', request: { name: '../x' }, code: 'Invalid', message: /no name for a snapshot/ },
    { when: 'a path is not absolute', request: { paths: ['repo'] }, code: 'Invalid', message: /not an absolute path/ },
    {
      when: 'a path lies in another',
      request: { paths: [home, `${home}/x`] },
      code: 'Invalid',
      message: /lies inside/,
    },
    { when: 'a path is the host', request: { paths: ['/usr'] }, code: 'NotFound', message: /not in a directory/ },
    { when: 'the name is taken', request: { name: 'base' }, code: 'AlreadyExists', message: /exists already/ },
  ])('refuses to seal and lets the pod go on when $when', async ({ request, code, message }) => {
    await node.create('refused', { containers: [container()], volumes })
    const pod = await node.until('refused', isReady)
    const sealing = seal(pod, 'refused', request)
    await expect(sealing).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
    expect(await sh('refused', 'echo on')).toBe('on\n')
    await remove('refused')
  })

  it('takes out of a snapshot what no later pod may get', async () => {
    const pod = await build(
      'dirty',
      `mkdir ${repo}; cd ${repo}; echo x > setuid; chmod 6755 setuid; mkfifo pipe; echo y > marked
       python3 -c 'import socket,os
s=socket.socket(socket.AF_UNIX); s.bind("socket")
os.setxattr("marked", "user.overlay.opaque", b"y"); os.setxattr("marked", "user.kept", b"y")'`,
    )
    const isRoot = process.getuid?.() === 0
    const made = join(node.dataDir, 'pods', pod.metadata.uid, 'volumes', 'work', 'repo', 'device')
    const { hostUid } = JSON.parse(readFileSync(join(node.dataDir, 'pods', pod.metadata.uid, 'record.json'), 'utf8'))
    if (isRoot) execFileSync('sh', ['-c', `mknod ${made} c 1 3 && chown ${hostUid}:${hostUid} ${made}`])
    const { stripped } = await seal(pod, 'dirty', { paths: [repo] })
    expect(stripped).toEqual({ setuid: 1, devices: isRoot ? 1 : 0, sockets: 1, attributes: 1 })
    const tree = join(node.dataDir, 'snapshots', 'dirty', 'tree-0')
    expect(lstatSync(join(tree, 'setuid')).mode & 0o7777).toBe(0o755)
    expect(readdirSync(tree).sort()).toEqual(['marked', 'pipe', 'setuid'])
    const list = `import os; print(os.listxattr(${JSON.stringify(join(tree, 'marked'))}))`
    expect(execFileSync('python3', ['-c', list]).toString()).toBe("['user.kept']\n")
    await remove('dirty')
    await node.agent.snapshots.remove('dirty')
  })

  it.skipIf(process.getuid?.() !== 0)(
    'names the file that belongs to somebody else (root needed to make one)',
    async () => {
      const pod = await build('foreign')
      const file = join(node.dataDir, 'pods', pod.metadata.uid, 'volumes', 'work', 'repo', 'src', 'one')
      chownSync(file, 0, 0)
      await expect(seal(pod, 'foreign')).rejects.toMatchObject({
        code: 'ForeignOwner',
        message: '/workspace/repo/src/one does not belong to the pod; every file of a snapshot must',
      })
      expect(node.agent.snapshots.find('foreign')).toBe(undefined)
      await remove('foreign')
    },
  )

  it.each<{ when: string; script: string; code: string; message: string }>([
    {
      when: 'a file holds a secret, across two pieces of it',
      script: `mkdir ${repo}; (head -c 1048570 /dev/zero; printf hunter22-hunter22) > ${repo}/big`,
      code: 'SecretFound',
      message: '/workspace/repo/big',
    },
    {
      when: 'a link holds it',
      script: `mkdir ${repo}; ln -s a-hunter22-hunter22 ${repo}/l`,
      code: 'SecretFound',
      message: '/workspace/repo/l',
    },
    {
      when: 'the path is a link',
      script: 'ln -s /usr /workspace/repo',
      code: 'Invalid',
      message: 'a link leads to it',
    },
    { when: 'there is no such directory', script: 'true', code: 'NotFound', message: 'no directory /workspace/repo' },
  ])('makes no snapshot when $when', async ({ script, code, message }) => {
    const pod = await build('spoilt', script)
    const refusal = await seal(pod, 'spoilt', { paths: [repo], secrets: ['hunter22-hunter22'] }).catch(
      (error: unknown) => error,
    )
    expect(refusal).toMatchObject({ code, message: expect.stringContaining(message) })
    expect(String(refusal)).not.toContain('hunter22-')
    expect(existsSync(join(node.dataDir, 'snapshots', 'spoilt'))).toBe(false)
    await remove('spoilt')
  })
})

/** Processes that hold overlays of pods of this data directory. */
function holders(dataDir: string): { pid: number; line: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
        return line[1] === 'attach' && line.some((word) => word.startsWith(dataDir))
          ? [{ pid: Number(pid), line: line.join(' ') }]
          : []
      } catch {
        return []
      }
    })
}

it('a snapshot is copied into a pod with mounts of its own where the kernel has no idmapped ones', async () => {
  await using node = await nodeUnderTest((dataDir) => {
    const isolation = bubblewrapIsolation({ dataDir })
    // What the compiled program answers on such a kernel; ours has them.
    isolation.attachSnapshot = async () => {
      throw new IsolationError('Unsupported', 'this kernel has no idmapped mounts')
    }
    return isolation
  })
  await node.create('build', { containers: [container()], volumes })
  const { metadata } = await node.until('build', isReady)
  await node.run('build', ['sh', '-ec', setUp])
  await node.agent.snapshots.seal({ podUid: metadata.uid, name: 'base', paths: [repo, home] })
  await node.create('late', { containers: [container()], volumes }, { annotations: { [snapshotAnnotation]: 'base' } })
  const pod = await node.until('late', (found) => isReady(found) && isAttached(found))
  expect(attached(pod)).toMatchObject({ reason: 'Copied', message: expect.stringContaining('no idmapped mounts') })
  const look = `cd ${repo} && echo mine > src/one && cat src/one && ls node_modules/a | wc -l && stat -c %U run src/one | uniq | wc -l`
  expect((await node.run('late', ['sh', '-ec', look])).stdout).toBe('mine\n20\n1\n')
})

import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { AgentSandboxClient, type OwnedSandbox, SandboxError } from '@corral/agent-sandbox-sdk'
import { Pods, SandboxClaims } from '@corral/resources'
import { gitRepository, isFullSize, type PlatformProcess, runCorral, startPlatformProcess } from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const namespace = 'corral'
let platform: PlatformProcess
let client: AgentSandboxClient
let sandbox: OwnedSandbox

beforeAll(async () => {
  platform = await startPlatformProcess({ args: ['--agent', 'command'] })
  client = new AgentSandboxClient({ kubeconfigPath: platform.kubeconfig, namespace })
  sandbox = await client.sandboxes.create({ pool: 'default', ttlMs: 3_600_000, labels: { 'example.com/for': 'tests' } })
})
afterAll(async () => {
  await sandbox?.delete()
  await client?.close()
  await platform?.[Symbol.asyncDispose]()
})
const code = (promise: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(promise).then(
    () => 'no failure',
    (error: unknown) => (error instanceof SandboxError ? error.code : error),
  )

describe('commands', () => {
  it('are awaited for their result, whatever their exit code', async () => {
    expect(await sandbox.runtime()).toBe('corral')
    expect(await sandbox.exec(['sh', '-c', 'echo out; echo err >&2; exit 3'])).toEqual({
      exitCode: 3,
      signal: undefined,
      stdout: 'out\n',
      stderr: 'err\n',
    })
    await expect(sandbox.shell('echo broken >&2; exit 4').ok()).rejects.toMatchObject({
      code: 'CommandFailed',
      message: expect.stringContaining('broken'),
    })
    expect(await code(sandbox.exec(['no-such-program']))).toBe('CommandNotFound')
  })

  it('get directory, environment and standard input, and are killed when their time is over', async () => {
    const { stdout } = await sandbox.exec(['sh', '-c', 'pwd; echo $GREETING; cat'], {
      cwd: '/tmp',
      env: { GREETING: 'hello there' },
      stdin: 'from outside',
    })
    expect(stdout).toBe('/tmp\nhello there\nfrom outside')
    const large = 'x'.repeat(3_000_000)
    expect((await sandbox.exec(['wc', '-c'], { stdin: large })).stdout.trim()).toBe('3000000')
    expect(await code(sandbox.shell('sleep 1000', { timeoutMs: 200 }))).toBe('Timeout')
    const stop = new AbortController()
    const sleeping = sandbox.shell('echo up; sleep 1001', { signal: stop.signal })
    for await (const line of sleeping.stdout.lines()) {
      expect(line).toBe('up')
      break
    }
    stop.abort()
    expect(await code(sleeping)).toBe('Aborted')
    await expect
      .poll(async () => (await sandbox.shell('cat /proc/[0-9]*/cmdline | tr "\\0" " "')).stdout)
      .not.toContain('sleep 100')
  })

  it('stream both ways while they run, with every byte of a long output', async () => {
    const cat = sandbox.exec(['cat'], { stdin: true })
    await cat.write('one\n')
    const seen: string[] = []
    for await (const { data } of cat) {
      seen.push(Buffer.from(data).toString())
      if (seen.join('') === 'one\n') await cat.write('two\n')
      if (seen.join('') === 'one\ntwo\n') await cat.end()
    }
    expect(await cat.exitCode).toBe(0)
    const long = sandbox.shell('head -c 20000000 /dev/zero | tr "\\0" a; echo done >&2')
    let bytes = 0
    for await (const chunk of long.stdout) bytes += chunk.length
    expect(bytes).toBe(20_000_000)
    expect((await long).stderr).toBe('done\n')
  })

  it('run in a terminal that can be resized', async () => {
    const shell = sandbox.exec(['sh'], { pty: { columns: 90, rows: 20 } })
    let text = ''
    const reading = (async () => {
      for await (const { data } of shell) text += Buffer.from(data).toString()
    })()
    await shell.write('stty size\n')
    await expect.poll(() => text).toContain('20 90')
    await shell.resize({ columns: 100, rows: 30 })
    await shell.write('stty size; exit 5\n')
    await reading
    expect(text).toContain('30 100')
    expect(await shell.exitCode).toBe(5)
  })

  it('in the background go on when their client goes, and are found again with all they wrote', async () => {
    const other = await client.sandboxes.get(sandbox.name)
    const started = other.exec(['sh', '-c', 'echo first; sleep 1; echo second'], { background: true })
    const id = (await started.id) ?? ''
    other.detach()
    expect(await code(started)).toBe('Aborted')
    expect(await sandbox.processes.attach(id)).toMatchObject({ exitCode: 0, stdout: 'first\nsecond\n' })
  })

  it('go on in the background, are found by id, and are started once', async () => {
    const argv = ['sh', '-c', 'echo first; sleep 0.3; echo second']
    const [one, two] = await Promise.all([
      sandbox.processes.start({ id: 'worker', argv }),
      sandbox.processes.start({ id: 'worker', argv }),
    ])
    expect(one).toEqual(two)
    expect((await sandbox.processes.attach('worker')).stdout).toBe('first\nsecond\n')
    expect((await sandbox.processes.attach('worker', { fromOffset: 6 })).stdout).toBe('second\n')
    expect((await sandbox.processes.list()).map(({ id }) => id)).toContain('worker')
  })
})

describe('files', () => {
  it('are written, listed, moved, copied and removed', async () => {
    await sandbox.files.write('/tmp/f/a/one.txt', 'one')
    await sandbox.files.write('/tmp/f/two.md', 'two', { mode: '0755' })
    expect(await sandbox.files.stat('/tmp/f/two.md')).toMatchObject({ type: 'file', size: 3, mode: '0755' })
    expect((await sandbox.files.list('/tmp/f')).map(({ path }) => path)).toEqual(['a', 'two.md'])
    expect((await sandbox.files.list('/tmp/f', { glob: '**/*.txt' })).map(({ path }) => path)).toEqual(['a/one.txt'])
    await sandbox.files.mkdir('/tmp/f/b/c')
    await sandbox.files.copy('/tmp/f/a', '/tmp/f/b/c/a')
    expect(await code(sandbox.files.move('/tmp/f/two.md', '/tmp/f/a/one.txt'))).toBe('AlreadyExists')
    await sandbox.files.move('/tmp/f/two.md', '/tmp/f/a/one.txt', { overwrite: true })
    expect(await sandbox.files.readText('/tmp/f/a/one.txt')).toBe('two')
    expect(await sandbox.files.readText('/tmp/f/b/c/a/one.txt')).toBe('one')
    expect(await code(sandbox.files.remove('/tmp/f'))).toBe('DirectoryNotEmpty')
    await sandbox.files.remove('/tmp/f', { recursive: true })
    await sandbox.files.remove('/tmp/f')
    expect(await sandbox.files.exists('/tmp/f')).toBe(false)
    expect(await code(sandbox.files.read('/tmp/f'))).toBe('NotFound')
  })

  it('tell of changes', async () => {
    await sandbox.files.mkdir('/tmp/watched/deep')
    const stop = new AbortController()
    const seen: string[] = []
    for await (const { type, path } of sandbox.files.watch('/tmp/watched', { signal: stop.signal })) {
      seen.push(`${type} ${path ?? ''}`)
      if (type === 'ready') await sandbox.files.write('/tmp/watched/deep/new.txt', 'x')
      if (path === 'deep/new.txt') break
    }
    expect(seen[0]).toBe('ready ')
  })

  it('go in and out as directories', async () => {
    const local = join(platform.directory, 'tree')
    mkdirSync(join(local, 'sub'), { recursive: true })
    writeFileSync(join(local, 'sub', 'file'), 'content')
    await sandbox.files.uploadDirectory(local, '/tmp/up')
    expect(await sandbox.files.readText('/tmp/up/sub/file')).toBe('content')
    await sandbox.files.downloadDirectory('/tmp/up', join(platform.directory, 'back'))
    expect(readFileSync(join(platform.directory, 'back', 'sub', 'file'), 'utf8')).toBe('content')
  })
})

describe('the rest of a handle', () => {
  it('reaches ports inside', async () => {
    const script = `require('http').createServer((q, r) => r.end('you asked ' + q.url)).listen(3456)`
    await sandbox.processes.start({ id: 'web', argv: ['node', '-e', script] })
    await sandbox.ports.waitForPort(3456)
    const answer = await sandbox.ports.fetch(3456, '/path?q=1')
    expect(await answer.text()).toBe('you asked /path?q=1')
    const listener = await sandbox.ports.forward(3456)
    try {
      expect(await (await fetch(`http://127.0.0.1:${listener.port}/there`)).text()).toBe('you asked /there')
    } finally {
      await listener.close()
    }
    expect(await code(sandbox.ports.waitForPort(3457, { timeoutMs: 300 }))).toBe('Timeout')
  })

  it('leads a port inside to a server outside', async () => {
    const server = createServer((socket) => socket.end('from outside'))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    await using reverse = await sandbox.ports.reverse(7_654, { host: '127.0.0.1', port })
    const script = `require('net').connect(${reverse.port}, '127.0.0.1').pipe(process.stdout)`
    expect((await sandbox.exec(['node', '-e', script]).ok()).stdout).toBe('from outside')
    server.close()
  })

  it('takes a repository in and commits out', async () => {
    const repository = await gitRepository(join(platform.directory, 'repository'), { 'a.txt': 'first\n' })
    const commit = await sandbox.git.push({ repository: repository.path, directory: '/tmp/work' })
    const script = `git -C /tmp/work log --format=%H -1; cd /tmp/work && echo more >> a.txt
git -c user.name=t -c user.email=t@example.com commit -qam change && git rev-parse HEAD`
    const [before, after] = (await sandbox.shell(script).ok()).stdout.trim().split('\n')
    expect(before).toBe(commit)
    const as = 'refs/heads/from-sandbox'
    expect(await sandbox.git.pull({ directory: '/tmp/work', repository: repository.path, as })).toBe(after)
  })

  it('tells status, events, usage and its end', async () => {
    expect(await sandbox.status()).toMatchObject({ phase: 'Running', isReady: true, operatingMode: 'Running' })
    expect(await sandbox.metrics()).toMatchObject({ processes: expect.any(Number) })
    expect((await sandbox.metrics()).memoryUsageBytes).toBeGreaterThan(1_000_000)
    const events = await sandbox.events()
    expect(events.map(({ reason }) => reason)).toContain('Started')
    const end = await sandbox.extend(7_200_000)
    const claim = await client.claims.get(sandbox.claimName ?? '')
    expect(Date.parse(claim.spec.lifecycle?.shutdownTime ?? '')).toBeGreaterThanOrEqual(end.getTime() - 1000)
  })
})

it('the health of a platform is told in full', async () => {
  expect(await client.healthCheck({ timeoutMs: 120_000 })).toMatchObject({
    healthy: true,
    crdVersions: { 'agents.x-k8s.io': expect.arrayContaining(['v1beta1']) },
    controllerInstalled: true,
    permissions: { 'create sandboxclaims': true, 'create pods/portforward': true, 'create pods/exec': true },
    warmPools: expect.arrayContaining([expect.objectContaining({ name: 'default' })]),
  })
  const elsewhere = new AgentSandboxClient({ kubeconfigPath: platform.kubeconfig, namespace: 'nowhere' })
  const { healthy, problems } = await elsewhere.healthCheck({ timeoutMs: 120_000 })
  expect([healthy, problems.find(({ check }) => check === 'namespaceExists')?.remedy]).toEqual([
    false,
    'Create namespace "nowhere".',
  ])
  await elsewhere.close()
})

it('the end of a client ends the calls under way on its handles, and nothing in the sandbox', async () => {
  const other = new AgentSandboxClient({ kubeconfigPath: platform.kubeconfig, namespace })
  const handle = await other.sandboxes.get(sandbox.name)
  const { id } = await handle.processes.start({ id: 'stays', argv: ['sleep', '1005'] })
  const calls = [handle.exec(['sleep', '1006']), handle.processes.attach(id)]
  await handle.exec(['true'])
  await other.close()
  for (const call of [...calls, handle.exec(['true'])])
    await expect(call).rejects.toMatchObject({
      code: 'Aborted',
      message: expect.stringMatching(/^the client .* closed$/),
    })
  expect((await sandbox.processes.list()).find((process) => process.id === id)?.exit).toBeUndefined()
  await sandbox.processes.kill(id, 'SIGKILL')
})

it.each([1, 50])('a sandbox that is resumed after its suspend was given up within %d ms takes commands', async (ms) => {
  await using made = await client.sandboxes.create({ pool: 'default' })
  await made.exec(['true'])
  await made.suspend({ signal: AbortSignal.timeout(ms) }).catch(() => {})
  await made.resume()
  expect((await made.exec(['echo', 'back'])).stdout).toBe('back\n')
})

describe('making and finding', () => {
  it('pools are scaled, and an informer keeps a copy of them', async () => {
    const metadata = { name: 'scaled', namespace }
    await client.warmPools.create({ metadata, spec: { replicas: 0, sandboxTemplateRef: { name: 'default' } } })
    const informer = await client.warmPools.informer()
    await informer.hasSynced
    await client.warmPools.scale('scaled', 1)
    await expect.poll(() => informer.get(`${namespace}/scaled`)?.spec.replicas, { timeout: 60_000 }).toBe(1)
    await informer.stop()
    await client.warmPools.delete('scaled')
  })

  it('a warm sandbox gets variables, files and a repository after it was claimed', async () => {
    const repository = await gitRepository(join(platform.directory, 'bound'), { 'b.txt': 'bound\n' })
    await using bound = await client.sandboxes.create({
      pool: 'default',
      env: { BOUND: 'late' },
      files: { '/tmp/bound/file': 'here' },
      repository: { url: repository.path, directory: '/tmp/bound/repo' },
    })
    const { stdout } = await bound.shell('echo $BOUND; cat /tmp/bound/file; cat /tmp/bound/repo/b.txt')
    expect(stdout).toBe('late\nherebound\n')
    const object = await bound.object()
    expect(object.metadata.labels?.['agents.x-k8s.io/launch-type'] ?? 'warm').toBe('warm')
  })

  it('the same name gives the same sandbox, to many at once', async () => {
    const request = {
      name: 'shared',
      pool: 'default',
      env: { SHARED: 'yes' },
      files: { '/tmp/shared': 'file' },
    } as const
    const found = [1, 2, 3].map(async () => {
      const handle = await client.sandboxes.getOrCreate(request)
      const { stdout } = await handle.shell('echo $SHARED; cat /tmp/shared')
      return { handle, stdout }
    })
    const answers = await Promise.all(found)
    const handles = answers.map(({ handle }) => handle)
    expect(new Set(handles.map(({ name }) => name)).size).toBe(1)
    expect(answers.map(({ stdout }) => stdout)).toEqual(Array(3).fill('yes\nfile'))
    await expect(client.sandboxes.getOrCreate({ name: 'shared', pool: 'other' })).rejects.toMatchObject({
      code: 'Conflict',
    })
    const borrowed = await client.sandboxes.get('shared')
    expect(borrowed.name).toBe(handles[0]?.name)
    for (const handle of [...handles, borrowed]) handle.detach()
    await client.claims.delete('shared')
  })

  it('the same name waits for what the creator of the sandbox has still to deliver, and says so when the time is over', async () => {
    const kube = await platform.kube()
    const ref = { name: 'half-made', namespace: 'corral' }
    const key = 'corral.dev/delivery-pending'
    await kube.create(SandboxClaims, {
      metadata: { ...ref, annotations: { [key]: 'true' } },
      spec: { warmPoolRef: { name: 'default' } },
    })
    // Ready first: the time below is for the delivery alone, however busy the machine is.
    await client.claims.waitForReady(ref.name)
    const request = { name: ref.name, pool: 'default', files: { '/tmp/half': 'mine' } } as const
    await expect(client.sandboxes.getOrCreate({ ...request, timeoutMs: 5_000 })).rejects.toMatchObject({
      code: 'SandboxNotReady',
      message: expect.stringContaining('its creator has not delivered its variables, files and repository yet'),
    })
    const waiting = client.sandboxes.getOrCreate(request)
    await kube.patch(SandboxClaims, ref, { type: 'merge', body: { metadata: { annotations: { [key]: null } } } })
    const handle = await waiting
    expect(await handle.files.exists('/tmp/half')).toBe(false)
    handle.detach()
    await client.claims.delete(ref.name)
  })

  it('the caller that finds the creator dead delivers instead, and the others wait for that one', async () => {
    const kube = await platform.kube()
    const ref = { name: 'orphaned', namespace: 'corral' }
    const key = 'corral.dev/delivery-pending'
    await kube.create(SandboxClaims, {
      metadata: { ...ref, annotations: { [key]: 'true' } },
      spec: { warmPoolRef: { name: 'default' } },
    })
    await client.claims.waitForReady(ref.name)
    const deliverers: number[] = []
    const handles = await Promise.all(
      [50, 600_000, 600_000].map((creatorTimeoutMs, caller) => {
        const content = async function* () {
          deliverers.push(caller)
          yield Buffer.from(`by ${caller}`)
        }
        const request = { name: ref.name, pool: 'default', env: { GIVEN: 'yes' } } as const
        return client.sandboxes.getOrCreate({ ...request, files: { '/tmp/given': content() }, creatorTimeoutMs })
      }),
    )
    expect(deliverers).toEqual([0])
    for (const handle of handles) {
      const { stdout } = await handle.shell('echo $GIVEN; cat /tmp/given')
      expect(stdout).toBe('yes\nby 0')
      handle.detach()
    }
    expect((await kube.get(SandboxClaims, ref)).metadata.annotations?.[key]).toBeUndefined()
    await client.claims.delete(ref.name)
  })

  it('the end of the scope deletes what was made, unless it was let go', async () => {
    const kube = await platform.kube()
    const names: string[] = []
    for (const isKept of [false, true]) {
      await using made = await client.sandboxes.create({ pool: 'default' })
      names.push(made.claimName ?? '')
      if (isKept) made.detach()
    }
    expect(await kube.find(SandboxClaims, { name: names[0]!, namespace })).toBeUndefined()
    expect(await kube.find(SandboxClaims, { name: names[1]!, namespace })).toBeDefined()
    await client.claims.delete(names[1]!)
  })

  it.each([
    { what: 'a pool that is no name', request: { pool: '' } },
    { what: 'a label key with a blank', request: { pool: 'default', labels: { 'bad key!': 'x' } } },
    { what: 'a lifetime of nothing', request: { pool: 'default', ttlMs: 0 } },
    { what: 'a relative file', request: { pool: 'default', files: { 'a/b': 'x' } } },
  ])('$what is refused before anything is made', async ({ request }) => {
    expect(await code(client.sandboxes.create(request))).toBe('Invalid')
  })

  if (isFullSize)
    it('a watch of a large tree leaves the sandbox alive', async () => {
      const stop = new AbortController()
      await using made = await client.sandboxes.create({ pool: 'default' })
      for await (const { type } of made.files.watch('/usr', { signal: stop.signal })) {
        expect(type).toBe('ready')
        break
      }
      expect((await made.exec(['echo', 'alive'])).stdout).toBe('alive\n')
    })

  it.each<{ what: string; call: () => Promise<unknown>; is: string; says: RegExp }>([
    {
      what: 'a listing of a file',
      call: async () => await sandbox.files.list('/etc/passwd'),
      is: 'NotADirectory',
      says: /"\/etc\/passwd" is not a directory/,
    },
    {
      what: 'a file below a file',
      call: () => sandbox.files.write('/etc/passwd/x', 'x'),
      is: 'NotADirectory',
      says: /"\/etc\/passwd" is not a directory/,
    },
    {
      what: 'an upload whose source fails',
      call: () => sandbox.files.write('/tmp/broken', failing()),
      is: 'Aborted',
      says: /what was to be sent failed: mine/,
    },
    {
      what: 'an upload of a directory that is not there',
      call: () => sandbox.files.uploadDirectory('/nowhere/at/all', '/tmp/x'),
      is: 'NotFound',
      says: /nowhere/,
    },
    {
      what: 'a request to a port nobody listens on',
      call: () => sandbox.ports.fetch(4444, '/'),
      is: 'ConnectionLost',
      says: /nothing listens on port 4444/,
    },
  ])('$what fails as $is', async ({ call, is, says }) => {
    await expect(call()).rejects.toMatchObject({ code: is, message: expect.stringMatching(says) })
  })

  it('ports take every kind of body and request that fetch takes', async () => {
    const echo = `require('http').createServer((q, r) => {
  let body = ''
  q.on('data', (c) => (body += c)).on('end', () => r.end([q.method, q.url, q.headers['content-type'], body].join(' ')))
}).listen(5055)`
    await sandbox.processes.start({ id: 'echo-5055', argv: ['node', '-e', echo] })
    await sandbox.ports.waitForPort(5055)
    const said = async (answer: Promise<Response>): Promise<string> => (await answer).text()
    const post = (body: NonNullable<RequestInit['body']>) =>
      said(sandbox.ports.fetch(5055, '/p', { method: 'POST', body }))
    expect(await post(new URLSearchParams({ a: 'b' }))).toBe(
      'POST /p application/x-www-form-urlencoded;charset=UTF-8 a=b',
    )
    expect(await post(new Blob(['x'], { type: 'text/x' }))).toBe('POST /p text/x x')
    expect(await post(new TextEncoder().encode('bytes').buffer)).toBe('POST /p  bytes')
    const request = new Request('http://any/way?q=1', {
      method: 'PUT',
      body: 'all of it',
      headers: { 'content-type': 'y' },
    })
    expect(await said(sandbox.ports.fetch(5055, request))).toBe('PUT /way?q=1 y all of it')
  })

  it('a pod without a runtime takes commands and files through the kubelet', async () => {
    const spec = { containers: [{ name: 'main', image: 'debian', command: ['/bin/sleep', 'infinity'] }] }
    await using plain = await client.sandboxes.create({
      podTemplate: { spec: { ...spec, terminationGracePeriodSeconds: 0 } },
    })
    expect(await plain.runtime()).toBe('pod-exec')
    await plain.files.write('/tmp/p/q', 'through exec')
    expect(await plain.files.readText('/tmp/p/q')).toBe('through exec')
    expect((await plain.files.list('/tmp/p')).map(({ path, type }) => [path, type])).toEqual([['q', 'file']])
    expect((await plain.exec(['cat', '/tmp/p/q'], { cwd: '/tmp' })).stdout).toBe('through exec')
    expect(await code(plain.files.read('/tmp/none'))).toBe('NotFound')
    expect(await code(plain.bindEnv({ A: 'b' }))).toBe('Unsupported')
    // What the first pod told is known of the next one, which does the same.
    await using next = await client.sandboxes.create({
      podTemplate: { spec: { ...spec, terminationGracePeriodSeconds: 0 } },
    })
    expect((await next.exec(['echo', 'next'])).stdout).toBe('next\n')
    expect(await next.runtime()).toBe('pod-exec')
  })
})

describe("upstream's images", () => {
  it.each([
    { image: 'registry.k8s.io/agent-sandbox/python-runtime-sandbox:v1', kind: 'corral', args: [] },
    { image: 'registry.k8s.io/agent-sandbox/sandboxd:v1', kind: 'sandboxd', args: ['--root-dir', '/tmp/root'] },
  ] as const)('$image starts and answers as $kind', async ({ image, kind, args }) => {
    const podTemplate = {
      spec: { containers: [{ name: 'main', image, args: [...args] }], terminationGracePeriodSeconds: 0 },
    }
    await using chosen = new AgentSandboxClient({ kubeconfigPath: platform.kubeconfig, namespace, runtime: kind })
    await using made = await chosen.sandboxes.create({ podTemplate })
    await made.ports.waitForPort(kind === 'sandboxd' ? 9090 : 8888)
    await made.files.write('/dir/script.txt', 'text')
    expect(await made.files.readText('/dir/script.txt')).toBe('text')
    const run = made.exec(['sh', '-c', 'read x; echo got $x; exit 7'], { stdin: 'input\n' })
    expect(await run).toMatchObject({ exitCode: 7, stdout: 'got input\n' })
  })
})

describe('a sandbox that dies', () => {
  const lost = async (use: (dying: OwnedSandbox, kill: () => Promise<void>) => Promise<void>): Promise<void> => {
    const kube = await platform.kube()
    await using dying = await client.sandboxes.create({ pool: 'default' })
    await use(dying, async () => {
      const pod = (await dying.status()).podName
      await kube.delete(SandboxClaims, { name: dying.claimName!, namespace })
      await kube.delete(Pods, { name: pod, namespace }, { gracePeriodSeconds: 0 }).catch(() => {})
    })
  }

  it.each([
    { how: 'at once', grace: { gracePeriodSeconds: 0 } },
    { how: 'in its own time', grace: {} },
  ])('ends a command with a typed error where its pod is deleted $how', async ({ grace }) => {
    await lost(async (dying, kill) => {
      const command = dying.shell('echo up; sleep 1000')
      for await (const _ of command.stdout.lines()) break
      const pod = (await dying.status()).podName
      await (await platform.kube()).delete(Pods, { name: pod, namespace }, grace)
      await kill()
      expect(['SandboxDeleted', 'SandboxFailed', 'ProcessLost']).toContain(await code(command))
    })
  })

  it('ends a file stream with a typed error', async () => {
    await lost(async (dying, kill) => {
      await dying.shell('head -c 200000000 /dev/zero > /tmp/big').ok()
      const read = async () => {
        let isFirst = true
        for await (const _ of dying.files.readStream('/tmp/big')) {
          if (isFirst) await kill()
          isFirst = false
        }
      }
      expect(['SandboxDeleted', 'SandboxFailed']).toContain(await code(read()))
    })
  })

  it('ends a forwarded port with its reason', async () => {
    await lost(async (dying, kill) => {
      const listener = await dying.ports.forward(8888)
      await kill()
      expect(await listener.ended).toMatchObject({ code: expect.stringMatching(/NotFound|Gone/) })
    })
  })
})

describe('the command line', () => {
  const corral = (...args: string[]) => runCorral([...args, '--data-dir', platform.dataDir, '-n', namespace])

  it('copies, suspends and resumes sandboxes by the name their user gave', async () => {
    writeFileSync(join(platform.directory, 'local.txt'), 'copied')
    expect((await corral('sandbox', 'create', 'box')).code).toBe(0)
    expect(await corral('sandbox', 'cp', join(platform.directory, 'local.txt'), 'box:/tmp/there.txt')).toMatchObject({
      code: 0,
    })
    const back = join(platform.directory, 'returned.txt')
    expect(await corral('sandbox', 'cp', 'box:/tmp/there.txt', back)).toMatchObject({ code: 0 })
    expect(readFileSync(back, 'utf8')).toBe('copied')
    expect((await corral('sandbox', 'cp', 'a', 'b')).stderr).toContain('one of the two paths must be NAME:/path')
    expect(await corral('sandbox', 'suspend', 'box')).toMatchObject({ code: 0, stdout: 'suspended box\n' })
    expect(await corral('sandbox', 'resume', 'box')).toMatchObject({ code: 0, stdout: 'resumed box\n' })
    expect(await corral('sandbox', 'rm', 'box')).toMatchObject({ code: 0 })
  })

  it('keeps pools and templates', async () => {
    expect((await corral('pool', 'list', '--json')).stdout).toContain('"default"')
    expect(await corral('pool', 'create', 'spare', '--template', 'default', '--replicas', '0')).toMatchObject({
      code: 0,
    })
    expect((await corral('pool', 'create', 'none', '--template', 'missing')).stderr).toContain('missing')
    expect((await corral('pool', 'scale', 'spare', 'many')).stderr).toContain('"many" is not a number of sandboxes')
    expect((await corral('pool', 'create', 'spare', '--template', 'default')).stderr).toBe(
      'corral: there is a pool "spare" already\nhint: Change how many it keeps with `corral pool scale spare N`, or choose another name.\n',
    )
    // One that is not there keeps none of the others, and what was removed is told.
    for (const words of ['pool scale nosuch 1', 'template show nosuch', 'pool create other --template nosuch']) {
      const kind = words.startsWith('pool scale') ? 'pool' : 'template'
      const stderr = `corral: there is no ${kind} "nosuch"\nhint: List them with \`corral ${kind} list\`.\n`
      expect(await corral(...words.split(' ')), words).toMatchObject({ code: 1, stdout: '', stderr })
    }
    expect(await corral('pool', 'rm', 'nosuch', 'spare')).toMatchObject({
      code: 1,
      stdout: 'removed spare\n',
      stderr: expect.stringContaining('there is no pool "nosuch"'),
    })
    const file = join(platform.directory, 'template.json')
    const container = { name: 'main', image: 'debian' }
    const template = { metadata: { name: 'mine' }, spec: { podTemplate: { spec: { containers: [container] } } } }
    writeFileSync(file, JSON.stringify(template))
    expect(await corral('template', 'apply', file)).toMatchObject({ code: 0 })
    expect((await corral('template', 'list')).stdout).toMatch(/mine +debian/)
    const shown = await corral('template', 'show', 'mine')
    const copy = shown.stdout.replace('"name": "mine"', '"name": "copy"')
    const applied = await platform.corral(['template', 'apply', '-'], { stdin: copy })
    expect(applied, 'a shown template under another name, from standard input').toMatchObject({
      code: 0,
      stdout: 'applied template copy\n',
    })
    expect(await corral('template', 'rm', 'copy')).toMatchObject({ code: 0 })
    writeFileSync(file, '{"spec": 1}')
    expect((await corral('template', 'apply', file)).stderr).toContain('is not a SandboxTemplate')
    expect(await corral('template', 'rm', 'nosuch', 'mine', '--json')).toMatchObject({
      code: 1,
      stdout: `${JSON.stringify({ removed: ['mine'] }, null, 2)}\n`,
      stderr: expect.stringContaining('there is no template "nosuch"'),
    })
    expect(await corral('template', 'rm', 'mine')).toMatchObject({ code: 1, stdout: '' })
  })
})

async function* failing(): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(10)
  throw new Error('mine')
}

import { AgentSandboxClient, type OwnedSandbox } from '@corral/agent-sandbox-sdk'
import { sandboxTools } from '@corral/agent-sandbox-sdk/ai'
import {
  AuthenticationError,
  CommandExitError,
  FilesystemEventType,
  FileType,
  InvalidArgumentError,
  NotEnoughSpaceError,
  NotFoundError,
  RateLimitError,
  Sandbox,
  SandboxError,
  TemplateError,
  TimeoutError,
} from '@corral/agent-sandbox-sdk/e2b'
import { loadKubeConfig } from '@corral/kube'
import { type PlatformProcess, startPlatformProcess } from '@corral/testing'
import { generateText, stepCountIs } from 'ai'
import { MockLanguageModelV2 } from 'ai/test'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

let platform: PlatformProcess
let client: AgentSandboxClient

beforeAll(async () => {
  platform = await startPlatformProcess({ args: ['--agent', 'command'] })
  client = new AgentSandboxClient({ kubeconfigPath: platform.kubeconfig, namespace: 'corral' })
})
afterAll(async () => {
  await client?.close()
  await platform?.[Symbol.asyncDispose]()
})

describe('code written for E2B', () => {
  let sandbox: Sandbox
  beforeAll(async () => {
    sandbox = await Sandbox.create({ client, envs: { GREETING: 'hello' }, metadata: { user: 'ada' } })
  })
  afterAll(() => sandbox?.kill())

  it('runs commands: a result, an error for another exit code than 0, a time limit, callbacks', async () => {
    const said: string[] = []
    const onStdout = (text: string): void => void said.push(text)
    expect(await sandbox.commands.run('echo $GREETING $WHO; echo oh >&2', { envs: { WHO: 'you' }, onStdout })).toEqual({
      exitCode: 0,
      stdout: 'hello you\n',
      stderr: 'oh\n',
    })
    expect(said.join('')).toBe('hello you\n')
    const failed = await sandbox.commands.run('echo broken >&2; exit 7').catch((error: unknown) => error)
    expect(failed).toBeInstanceOf(CommandExitError)
    expect(failed).toMatchObject({ exitCode: 7, stderr: 'broken\n', code: 'CommandFailed' })
    await expect(sandbox.commands.run('sleep 1000', { timeoutMs: 200 })).rejects.toBeInstanceOf(TimeoutError)
  })

  it('runs commands in the background: listed, written to, connected to again, killed', async () => {
    const running = await sandbox.commands.run('read line; echo got $line; sleep 1000', {
      background: true,
      stdin: true,
      timeoutMs: 0,
    })
    expect((await sandbox.commands.list()).map(({ pid }) => pid)).toContain(running.pid)
    await sandbox.commands.sendStdin(running.pid, 'over there\n')
    await expect.poll(() => running.stdout).toBe('got over there\n')
    const other = await sandbox.commands.connect(running.pid)
    await expect.poll(() => other.stdout).toBe('got over there\n')
    await other.disconnect()
    await expect(other.wait()).rejects.toMatchObject({ code: 'Aborted' })
    expect(await sandbox.commands.kill(running.pid)).toBe(true)
    await expect(running.wait()).rejects.toMatchObject({ exitCode: 137 })
    expect(await sandbox.commands.kill(running.pid)).toBe(false)
    await expect(sandbox.commands.connect(running.pid)).rejects.toBeInstanceOf(NotFoundError)
  })

  it('reads, writes, lists, moves, removes and watches files, from the home directory on', async () => {
    const written = await sandbox.files.write('notes/a.txt', 'one')
    const home = (await sandbox.commands.run('printf %s "$HOME"')).stdout
    expect(written).toMatchObject({ name: 'a.txt', path: `${home}/notes/a.txt`, type: 'file', size: 3 })
    await sandbox.files.write([
      { path: 'notes/b.bin', data: new Uint8Array([0, 255]).buffer },
      { path: 'notes/deep/c.txt', data: new Blob(['three']) },
    ])
    expect(await sandbox.files.read('notes/a.txt')).toBe('one')
    expect([...(await sandbox.files.read('notes/b.bin', { format: 'bytes' }))]).toEqual([0, 255])
    expect(await new Response(await sandbox.files.read('notes/deep/c.txt', { format: 'stream' })).text()).toBe('three')
    expect((await sandbox.files.list('notes')).map(({ name, type }) => [name, type])).toEqual([
      ['a.txt', 'file'],
      ['b.bin', 'file'],
      ['deep', 'dir'],
    ])
    expect((await sandbox.files.list('notes', { depth: 2 })).map(({ name }) => name)).toContain('c.txt')
    expect(await sandbox.files.makeDir('notes/deep')).toBe(false)
    expect(await sandbox.files.makeDir('notes/new')).toBe(true)
    expect(await sandbox.files.rename('notes/a.txt', 'notes/new/a.txt')).toMatchObject({ name: 'a.txt' })
    expect(await sandbox.files.exists('notes/a.txt')).toBe(false)
    const seen: string[] = []
    const watch = await sandbox.files.watchDir('notes', ({ type, name }) => void seen.push(`${type} ${name}`))
    const below: string[] = []
    const all = await sandbox.files.watchDir(
      'notes',
      ({ type, name }) => {
        if (type === FilesystemEventType.CREATE) below.push(name)
      },
      { recursive: true },
    )
    await sandbox.files.write('notes/deep/below.txt', 'now')
    await expect.poll(() => below).toContain('deep/below.txt')
    await sandbox.files.write('notes/fresh.txt', 'now')
    await expect.poll(() => seen.some((event) => event.endsWith('fresh.txt'))).toBe(true)
    // As in E2B, what happens in a directory below is told only where that was asked for.
    expect(seen.filter((event) => event.includes('below.txt'))).toEqual([])
    await Promise.all([watch.stop(), all.stop()])
    expect((await sandbox.files.list('notes')).filter(({ type }) => type === FileType.DIR)).toHaveLength(2)
    await sandbox.files.remove('notes')
    await expect(sandbox.files.getInfo('notes')).rejects.toBeInstanceOf(NotFoundError)
    await expect(sandbox.files.read('notes/a.txt')).rejects.toBeInstanceOf(NotFoundError)
  })

  it('finds the classes it catches, each a SandboxError', async () => {
    const classes = [AuthenticationError, NotEnoughSpaceError, RateLimitError, TemplateError, TimeoutError]
    expect(classes.every((Class) => new Class('Invalid', 'x') instanceof SandboxError)).toBe(true)
    const stranger = new AgentSandboxClient({
      kubeConfig: {
        ...(await loadKubeConfig({ path: platform.kubeconfig })),
        credentials: async () => ({ authorization: 'Bearer x' }),
      },
    })
    await expect(Sandbox.getInfo(sandbox.sandboxId, { client: stranger })).rejects.toBeInstanceOf(AuthenticationError)
    await stranger.close()
  })

  it('opens a terminal', async () => {
    let screen = ''
    const decoder = new TextDecoder()
    const terminal = await sandbox.pty.create({
      cols: 100,
      rows: 30,
      onData: (data) => {
        screen += decoder.decode(data, { stream: true })
      },
    })
    await sandbox.pty.resize(terminal.pid, { cols: 120, rows: 40 })
    await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode('stty size; exit 3\n'))
    expect(await terminal.wait()).toEqual({ exitCode: 3 })
    expect(screen).toContain('40 120')
    await expect(sandbox.pty.resize(terminal.pid, { cols: 1, rows: 1 })).rejects.toBeInstanceOf(NotFoundError)
  })

  it('takes bytes of Node, refuses nothing, and tells half a character as what it is', async () => {
    expect(await sandbox.files.write('bytes.bin', Buffer.from([1, 2, 3]))).toMatchObject({ size: 3 })
    await expect(sandbox.files.write('none.txt', undefined as unknown as string)).rejects.toBeInstanceOf(
      InvalidArgumentError,
    )
    expect(await sandbox.files.exists('none.txt')).toBe(false)
    const said: string[] = []
    const onStdout = (text: string): void => void said.push(text)
    const { stdout } = await sandbox.commands.run("printf 'a\\303'", { onStdout })
    expect(stdout).toBe('a\ufffd')
    expect(said.join('')).toBe(stdout)
    expect(said).not.toContain('')
  })

  it('lists page by page and by state; variables are there again after a pause', async () => {
    const query = { metadata: { user: 'ada' } }
    const paginator = Sandbox.list({ client, query, limit: 1 })
    const pages: string[][] = []
    while (paginator.hasNext) pages.push((await paginator.nextItems()).map(({ sandboxId }) => sandboxId))
    expect(pages).toEqual([[sandbox.sandboxId]])
    const awaited = await Sandbox.list({ client, query })
    expect(await awaited.nextItems()).toMatchObject([{ sandboxId: sandbox.sandboxId, state: 'running' }])
    expect(awaited.hasNext).toBe(false)
    await sandbox.pause()
    expect(await Sandbox.list({ client, query: { ...query, state: ['running'] } })).toEqual([])
    expect(await Sandbox.getInfo(sandbox.sandboxId, { client })).toMatchObject({ state: 'paused' })
    await sandbox.resume()
    expect((await sandbox.commands.run('echo $GREETING')).stdout).toBe('hello\n')
    expect(await Sandbox.list({ client, query: { ...query, state: ['running'] } })).toHaveLength(1)
    await Sandbox.setTimeout(sandbox.sandboxId, 7_200_000, { client })
    expect((await sandbox.getInfo()).endAt?.getTime()).toBeGreaterThan(Date.now() + 7_000_000)
    await expect(Sandbox.getInfo('none', { client })).rejects.toBeInstanceOf(NotFoundError)
  })

  it('finds sandboxes again by id and metadata, moves their end, and kills them', async () => {
    const listed = await Sandbox.list({ client, query: { metadata: { user: 'ada' } } })
    expect(listed).toMatchObject([{ sandboxId: sandbox.sandboxId, templateId: 'default', metadata: { user: 'ada' } }])
    expect(await Sandbox.list({ client, query: { metadata: { user: 'bob' } } })).toEqual([])
    const again = await Sandbox.connect(sandbox.sandboxId, { client })
    expect((await again.commands.run('echo $GREETING')).stdout).toBe('hello\n')
    expect(await again.isRunning()).toBe(true)
    await again.setTimeout(3_600_000)
    expect((await again.getInfo()).endAt?.getTime()).toBeGreaterThan(Date.now() + 3_000_000)
    expect(() => again.getHost(80)).toThrow(SandboxError)
    expect(await again.kill()).toBe(true)
    expect([await again.kill(), await again.isRunning()]).toEqual([false, false])
    // Not "Aborted": that it is gone is what code written for E2B catches.
    for (const call of [() => again.commands.run('true'), () => again.files.read('/etc/hostname')])
      await expect(call()).rejects.toMatchObject({ name: 'NotFoundError', code: 'SandboxDeleted' })
    expect(await Sandbox.kill(sandbox.sandboxId, { client })).toBe(false)
    await expect(Sandbox.connect(sandbox.sandboxId, { client })).rejects.toBeInstanceOf(NotFoundError)
  })

  it('finds a sandbox that it killed gone, and not a client closed that it never saw', async () => {
    const own = await Sandbox.create({ cluster: { kubeconfigPath: platform.kubeconfig, namespace: 'corral' } })
    expect(await own.kill()).toBe(true)
    for (const call of [() => own.getInfo(), () => own.setTimeout(1000), () => own.resume()])
      await expect(call()).rejects.toBeInstanceOf(NotFoundError)
  })
})

describe('tools of the AI SDK', () => {
  let sandbox: OwnedSandbox
  beforeAll(async () => {
    sandbox = await client.sandboxes.create({ pool: 'default', ttlMs: 600_000 })
  })
  afterAll(() => sandbox?.delete())

  it('let a model of generateText write a file, run it and read what it answers', async () => {
    const tools = sandboxTools(sandbox, { cwd: '/tmp' })
    const calls = [
      { toolName: 'writeFile', input: { path: 'sum.mjs', content: 'console.log(40 + 2); process.exit(5)' } },
      { toolName: 'runCommand', input: { command: 'node sum.mjs' } },
      { toolName: 'listFiles', input: { path: '/tmp' } },
      { toolName: 'readFile', input: { path: '/nowhere' } },
    ]
    let turn = 0
    const model = new MockLanguageModelV2({
      doGenerate: async () => {
        const call = calls[turn++]
        return {
          content: call
            ? [
                {
                  type: 'tool-call',
                  toolCallId: `call-${turn}`,
                  toolName: call.toolName,
                  input: JSON.stringify(call.input),
                },
              ]
            : [{ type: 'text', text: 'done' }],
          finishReason: call ? 'tool-calls' : 'stop',
          usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
          warnings: [],
        }
      },
    })
    const { steps, text } = await generateText({ model, tools, prompt: 'add', stopWhen: stepCountIs(9) })
    const outputs = steps.flatMap((step) => step.toolResults.map(({ output }) => output))
    expect(outputs.slice(0, 2)).toEqual([{ bytesWritten: 36 }, { exitCode: 5, stdout: '42\n', stderr: '' }])
    expect(outputs[2]).toMatchObject({ entries: expect.arrayContaining([{ name: 'sum.mjs', type: 'file', size: 36 }]) })
    const failed = steps.flatMap((step) => step.content).find((part) => part.type === 'tool-error')
    expect(failed).toMatchObject({ toolName: 'readFile', error: { code: 'NotFound' } })
    expect(text).toBe('done')
  })

  it('keep beginning and end of a long output, and say what is missing', async () => {
    const { runCommand } = sandboxTools(sandbox, { maxCharacters: 20 })
    const { stdout } = await runCommand.execute({ command: 'seq 1 1000' })
    expect(stdout).toBe('1\n2\n3\n4\n5\n\n[3873 characters left out]\n\n999\n1000\n')
  })

  it('find a file under the name by which a command has just written it, where no directory was given', async () => {
    const { runCommand, readFile, writeFile, listFiles } = sandboxTools(sandbox)
    await runCommand.execute({ command: 'mkdir -p notes && echo hello > notes/one' })
    expect(await readFile.execute({ path: 'notes/one' })).toEqual({ content: 'hello\n' })
    await writeFile.execute({ path: 'notes/two', content: 'bye' })
    expect((await runCommand.execute({ command: 'cat notes/two' })).stdout).toBe('bye')
    expect((await listFiles.execute({ path: 'notes' })).entries.map(({ name }) => name).sort()).toEqual(['one', 'two'])
  })

  it('answer with the ends of an output that is larger than a result may be', async () => {
    const { runCommand } = sandboxTools(sandbox, { maxCharacters: 4 })
    const command = "printf ab; head -c 20000000 /dev/zero | tr '\\0' x; printf yz; printf äöüß >&2; exit 3"
    expect(await runCommand.execute({ command })).toEqual({
      exitCode: 3,
      stdout: 'ab\n[20000000 characters left out]\nyz',
      stderr: 'äöüß',
    })
  })
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { AgentSandboxClient } from '@corral/agent-sandbox-sdk'
import { type McpHttpServer, serveMcpHttp } from '@corral/mcp'
import { TasksClient } from '@corral/protocol'
import { SandboxClaims } from '@corral/resources'
import {
  corralProgram,
  gitRepository,
  type PlatformProcess,
  startPlatformProcess,
  temporaryDirectory,
  waitUntil,
} from '@corral/testing'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

let platform: PlatformProcess
let claims: () => Promise<string[]>

beforeAll(async () => {
  platform = await startPlatformProcess({ args: ['--warm', '1'] })
  claims = async () => {
    const { stdout } = await platform.kubectl(['get', 'sandboxclaims', '-o', 'name'])
    return stdout.split('\n').filter(Boolean)
  }
})
afterAll(() => platform?.[Symbol.asyncDispose]())

interface Answer {
  isError?: boolean
  text: string
  data: Record<string, unknown>
}

async function call(client: Client, name: string, args: Record<string, unknown> = {}): Promise<Answer> {
  const { isError, content, structuredContent } = await client.callTool({ name, arguments: args }, { timeout: 240_000 })
  const [first] = content as { text: string }[]
  return {
    ...(isError ? { isError } : {}),
    text: first?.text ?? '',
    data: (structuredContent ?? {}) as Record<string, unknown>,
  }
}

describe('corral mcp over standard input and output', () => {
  let client: Client
  beforeAll(async () => {
    client = new Client({ name: 'test', version: '1' })
    const args = [corralProgram, 'mcp', '--data-dir', platform.dataDir]
    await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'inherit' }))
  })
  afterAll(() => client?.close())

  it('offers tools for sandboxes and tasks, each with a schema', async () => {
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name).sort()).toEqual([
      'answer_task',
      'cancel_task',
      'create_sandbox',
      'create_task',
      'delete_sandbox',
      'download_file',
      'execute_command',
      'file_exists',
      'get_task',
      'get_task_diff',
      'list_files',
      'list_sandboxes',
      'list_tasks',
      'send_message',
      'upload_file',
      'wait_task',
    ])
    for (const tool of tools) expect(tool.inputSchema, tool.name).toMatchObject({ type: 'object' })
  })

  it('110: a sandbox lives 300 seconds and belongs to its session; values out of bounds are refused', async () => {
    const { data } = await call(client, 'create_sandbox', {})
    const at = { sandbox_claim_name: String(data.sandbox_claim_name) }
    const kube = await platform.kube()
    const claim = await kube.get(SandboxClaims, { name: at.sandbox_claim_name, namespace: 'corral' })
    const leftMs = Date.parse(claim.spec.lifecycle?.shutdownTime ?? '') - Date.parse(claim.metadata.creationTimestamp)
    expect(Math.round(leftMs / 10_000)).toBe(30)
    expect(claim.metadata.labels?.['mcp.k8s-agent-sandbox/session-id']).toMatch(/./)
    await call(client, 'execute_command', { ...at, command: 'mkdir /tmp/five; cd /tmp/five; touch 1 2 3 4 5' })
    const list = (max_entries: number) => call(client, 'list_files', { ...at, path: '/tmp/five', max_entries })
    expect((await list(2)).data).toMatchObject({ entries: [{}, {}], total_entries: 5, truncated: true })
    expect((await list(5)).data).toMatchObject({ total_entries: 5, truncated: false })
    for (const wrong of [0, 10_001]) expect((await list(wrong).catch(() => ({ isError: true }))).isError).toBe(true)
    for (const timeout of [0, 601]) {
      const answer = await call(client, 'execute_command', { ...at, command: 'true', timeout }).catch(() => undefined)
      expect(answer?.isError ?? true).toBe(true)
    }
    await call(client, 'delete_sandbox', at)
  })

  it('a sandbox takes commands and files, text and bytes, under the names its commands use', async () => {
    const { data } = await call(client, 'create_sandbox', { warmpool: 'default' })
    const at = { sandbox_claim_name: data.sandbox_claim_name }
    const failing = await call(client, 'execute_command', { ...at, command: 'echo out; echo err >&2; exit 3' })
    expect(failing).toMatchObject({ data: { exit_code: 3, stdout: 'out\n', stderr: 'err\n' } })
    expect(failing.isError).toBeUndefined()
    const { contents } = await client.readResource({ uri: 'sandboxes://corral' })
    expect(contents).toMatchObject([{ text: data.sandbox_claim_name }])
    expect((await client.readResource({ uri: 'sandboxes://elsewhere' })).contents).toEqual([])

    await call(client, 'execute_command', { ...at, command: 'mkdir /tmp/listed' })
    const file = { ...at, path: '/tmp/listed/one.txt' }
    expect((await call(client, 'upload_file', { ...file, content: 'grüße' })).data).toEqual({ bytes_written: 7 })
    expect((await call(client, 'download_file', file)).data).toEqual({ content: 'grüße', bytes_read: 7 })
    expect((await call(client, 'file_exists', file)).data).toEqual({ exists: true })

    const bytes = { ...at, path: '/tmp/listed/two.bin', binary: true }
    await call(client, 'upload_file', { ...bytes, content: '/wA=' })
    expect((await call(client, 'download_file', bytes)).data).toEqual({ content: '/wA=', bytes_read: 2 })
    const asText = await call(client, 'download_file', { ...bytes, binary: false })
    expect(asText).toMatchObject({ isError: true, text: expect.stringContaining('is not UTF-8 text') })
    const listing = await call(client, 'list_files', { ...at, path: '/tmp/listed', max_entries: 1 })
    expect(listing.data).toMatchObject({ truncated: true, entries: [{ type: 'file' }] })

    await call(client, 'execute_command', { ...at, command: 'echo by a command > made.txt; echo home > ~/kept.txt' })
    for (const [path, content] of [
      ['made.txt', 'by a command\n'],
      ['./made.txt', 'by a command\n'],
      ['~/kept.txt', 'home\n'],
    ]) {
      expect((await call(client, 'download_file', { ...at, path })).data, path).toMatchObject({ content })
      expect((await call(client, 'file_exists', { ...at, path })).data, path).toEqual({ exists: true })
    }
    await call(client, 'upload_file', { ...at, path: 'sent.txt', content: 'by a tool' })
    expect((await call(client, 'execute_command', { ...at, command: 'cat sent.txt' })).data.stdout).toBe('by a tool')
    expect((await call(client, 'list_files', { ...at, path: '.' })).text).toContain('sent.txt')
    const long = await call(client, 'execute_command', { ...at, command: 'yes | head -c 12000000; echo the end' })
    expect(long.data.stdout).toMatch(/^y\n.*characters left out.*the end\n$/s)

    expect((await call(client, 'delete_sandbox', at)).isError).toBeUndefined()
    const gone = await call(client, 'execute_command', { ...at, command: 'true' })
    expect(gone).toMatchObject({ isError: true, text: expect.stringMatching(/^NotFound: this session has no sandbox/) })
  })

  it('a task runs to its branch, and its patch can be read', async () => {
    await using scratch = temporaryDirectory()
    const repo = await gitRepository(join(scratch.path, 'repo'))
    writeFileSync(join(repo.path, 'old.txt'), 'one\n')
    await repo.git('add', '.')
    await repo.git('commit', '-qm', 'old')
    const created = await call(client, 'create_task', { repo: repo.path, task: 'x', command: 'echo two > new.txt' })
    const { id } = created.data
    await waitUntil('the task has ended', async () => {
      const { data } = await call(client, 'wait_task', { id, timeout: 60 })
      return data.status === 'SUCCEEDED'
    })
    expect((await call(client, 'get_task_diff', { id })).data).toMatchObject({
      diff: expect.stringContaining('+two'),
      truncated: false,
    })
    expect(await call(client, 'get_task', { id: 'nothing' })).toMatchObject({ isError: true, text: /^NotFound/ })
  })

  it('the end of the client deletes its sandboxes', async () => {
    const { data } = await call(client, 'create_sandbox', { shutdown_after_seconds: null })
    const claim = `sandboxclaim.extensions.agents.x-k8s.io/${data.sandbox_claim_name}`
    expect(await claims()).toContain(claim)
    await client.close()
    await waitUntil('the claim is gone', async () => !(await claims()).includes(claim))
  })
})

it('`mcp --http` with an empty CORRAL_MCP_TOKEN makes one up instead of refusing everybody', async () => {
  const args = [corralProgram, 'mcp', '--http', '0', '--data-dir', platform.dataDir]
  const env = { ...platform.environment(), CORRAL_MCP_TOKEN: '' }
  const program = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(program, 'exit')
  const said: string[] = []
  for await (const line of createInterface({ input: program.stdout })) {
    said.push(line)
    if (said.length === 2) break
  }
  const [url, token] = [said[0]?.replace('MCP at ', ''), said[1]?.replace('token ', '')]
  const answer = await fetch(url ?? '', { method: 'POST', body: '{}', headers: { authorization: `Bearer ${token}` } })
  expect(answer.status).not.toBe(401)
  await answer.body?.cancel()
  program.kill()
  await ended
})

describe('streamable HTTP', () => {
  const token = 'a-token-of-the-test'
  let server: McpHttpServer
  beforeAll(async () => {
    const sandboxes = new AgentSandboxClient({ kubeconfigPath: platform.kubeconfig })
    const tasks = new TasksClient({ baseUrl: platform.url, token: platform.token })
    server = await serveMcpHttp({ backend: { sandboxes, tasks, version: '0' }, token, host: '127.0.0.1', port: 0 })
  })
  afterAll(() => server?.close())

  const connect = async (): Promise<Client> => {
    const client = new Client({ name: 'test', version: '1' })
    const requestInit = { headers: { authorization: `Bearer ${token}` } }
    await client.connect(new StreamableHTTPClientTransport(new URL(server.url), { requestInit }))
    return client
  }

  it('two sessions do not see the sandboxes of each other', async () => {
    const [one, other] = await Promise.all([connect(), connect()])
    const { data } = await call(one, 'create_sandbox')
    const name = data.sandbox_claim_name
    expect((await call(one, 'list_sandboxes')).data).toEqual({ sandbox_claim_names: [name] })
    expect((await call(other, 'list_sandboxes')).data).toEqual({ sandbox_claim_names: [] })
    const foreign = await call(other, 'execute_command', { sandbox_claim_name: name, command: 'true' })
    expect(foreign.text).toMatch(/^NotFound: this session has no sandbox/)
    await Promise.all([one.close(), other.close()])
  })

  it('a file of 8 MiB goes in and out, as text and as base64', async () => {
    const client = await connect()
    const sandbox_claim_name = (await call(client, 'create_sandbox')).data.sandbox_claim_name as string
    const bytes = 8 * 1024 * 1024
    for (const [content, binary] of [
      ['"\n'.repeat(bytes / 2), false],
      [Buffer.alloc(bytes, 255).toString('base64'), true],
    ] as const) {
      const file = { sandbox_claim_name, path: 'large', binary }
      expect((await call(client, 'upload_file', { ...file, content })).data).toEqual({ bytes_written: bytes })
      const { data } = await call(client, 'download_file', file)
      expect(data.content === content).toBe(true)
    }
    await call(client, 'delete_sandbox', { sandbox_claim_name })
    await client.close()
  })

  it('a command that its client cancels is ended, and the sandbox goes on', async () => {
    const client = await connect()
    const sandbox_claim_name = (await call(client, 'create_sandbox')).data.sandbox_claim_name as string
    const run = (command: string) => call(client, 'execute_command', { sandbox_claim_name, command })
    const given = new AbortController()
    const long = { sandbox_claim_name, command: 'sleep 500.125', timeout: 600 }
    const cancelled = client.callTool({ name: 'execute_command', arguments: long }, { signal: given.signal })
    const looking = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep 500[.]125'"
    const runs = async () => (await run(looking)).data.stdout !== '0\n'
    await waitUntil('the command runs', runs)
    given.abort()
    await expect(cancelled).rejects.toThrow()
    await waitUntil('the command is gone', async () => !(await runs()))
    await call(client, 'delete_sandbox', { sandbox_claim_name })
    await client.close()
  })

  it('the end of a session deletes its sandboxes, also one that is being made', async () => {
    const client = new Client({ name: 'test', version: '1' })
    const requestInit = { headers: { authorization: `Bearer ${token}` } }
    const transport = new StreamableHTTPClientTransport(new URL(server.url), { requestInit })
    await client.connect(transport)
    const before = await claims()
    await call(client, 'create_sandbox', { shutdown_after_seconds: null })
    const waiting = call(client, 'create_sandbox', { shutdown_after_seconds: null })
    waiting.catch(() => undefined)
    await waitUntil('a second claim is there', async () => (await claims()).length === before.length + 2)
    const { sessionId } = transport
    await transport.terminateSession()
    await waitUntil('both claims are gone', async () => (await claims()).length === before.length)
    const headers = { ...requestInit.headers, 'mcp-session-id': sessionId! }
    expect((await fetch(server.url, { method: 'DELETE', headers })).status).toBe(404)
    await client.close()
  })

  it('a request of a page whose name was pointed at this machine is refused by its Host', async () => {
    const { port } = new URL(server.url)
    const headers = { host: `evil.example:${port}`, origin: `http://evil.example:${port}` }
    const sent = request({ host: '127.0.0.1', port, path: '/mcp', method: 'POST', headers }).end('{}')
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    expect(answer.statusCode).toBe(403)
    expect((await answer.toArray()).join('')).toContain('requests to evil.example are not accepted')
  })

  const opening = { method: 'POST', body: '{}' }
  it.each([
    ['without a token', {}, 401, 'the bearer token is missing or wrong'],
    ['with another token', { authorization: 'Bearer other' }, 401, 'the bearer token is missing or wrong'],
    [
      'of a page elsewhere',
      { authorization: `Bearer ${token}`, origin: 'http://evil.example' },
      403,
      'http://evil.example',
    ],
    ['of a session that ended', { authorization: `Bearer ${token}`, 'mcp-session-id': 'gone' }, 404, 'has ended'],
  ])('a request %s is refused', async (_name, headers, status, reason) => {
    const response = await fetch(server.url, { ...opening, headers: headers as Record<string, string> })
    expect(response.status).toBe(status)
    expect(await response.text()).toContain(reason)
  })
})

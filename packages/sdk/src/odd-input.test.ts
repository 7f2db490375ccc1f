import type { Sandbox } from '@corral/resources'
import { beforeEach, expect, it } from 'vitest'
import { AgentSandboxClient } from './agent-sandbox-client.js'
import type { CreateSandboxRequest } from './create-sandbox.js'
import { TestCluster } from './test-cluster.test-suite.js'
import { timeLimit } from './time-limit.js'

const podTemplate = { spec: { containers: [{ name: 'sandbox', image: 'debian' }] } }
let cluster: TestCluster
let client: AgentSandboxClient

beforeEach(() => {
  cluster = new TestCluster()
  client = new AgentSandboxClient({ client: cluster.client(), namespace: 'default' })
})

it.each<{ what: string; request: unknown; says: RegExp }>([
  { what: 'nothing at all', request: undefined, says: /needs a pool/ },
  {
    what: 'a pool and a template',
    request: { pool: 'a', template: 'b' },
    says: /one of pool, template and podTemplate/,
  },
  { what: 'a time limit below zero', request: { pool: 'a', timeoutMs: -5 }, says: /time limit of -5 ms/ },
  { what: 'a time limit that is no number', request: { pool: 'a', timeoutMs: Number.NaN }, says: /time limit of NaN/ },
  { what: 'a shutdown time that is none', request: { pool: 'a', shutdownTime: new Date('x') }, says: /is no time/ },
  { what: 'a variable that is a number', request: { pool: 'a', env: { A: 5 } }, says: /"A" is not a variable/ },
  {
    what: 'egress to no host',
    request: { pool: 'a', egress: ['not a host!!'] },
    says: /egress "not a host!!" must be/,
  },
  { what: 'egress without a port', request: { pool: 'a', egress: ['example.com'] }, says: /must be host:port/ },
  { what: 'a way of binding nobody knows', request: { pool: 'a', binding: 'x' }, says: /binding "x" is none of/ },
])('$what is refused before anything is sent', async ({ request, says }) => {
  const call = client.sandboxes.create(request as CreateSandboxRequest)
  await expect(call).rejects.toMatchObject({ code: 'Invalid', message: expect.stringMatching(says) })
  expect(cluster.requests.filter((line) => line.startsWith('POST'))).toEqual([])
})

it.each<{ what: string; options: object; says: RegExp }>([
  { what: 'a way nobody knows', options: { connection: { type: 'x' } }, says: /"x" is no type of connection: auto, / },
  { what: 'a direct way to nowhere', options: { connection: { type: 'direct' } }, says: /needs a url/ },
  { what: 'a runtime nobody knows', options: { runtime: 'x' }, says: /"x" is no runtime: corral, / },
])('a client with $what is refused', ({ options, says }) => {
  expect(() => new AgentSandboxClient(options)).toThrow(says)
})

it.each<{ verb: string; call: () => Promise<unknown> }>([
  { verb: 'delete', call: () => client.sandboxes.delete('') },
  { verb: 'get', call: () => client.sandboxes.get('') },
  { verb: 'patch', call: () => client.sandboxes.objects.patch('', { metadata: { labels: { a: 'b' } } }) },
  { verb: 'delete of undefined', call: () => client.sandboxes.delete(undefined as unknown as string) },
  { verb: 'get of undefined', call: () => client.sandboxes.get(undefined as unknown as string) },
  { verb: 'getOrCreate', call: () => client.sandboxes.getOrCreate({ pool: 'a' } as { pool: string; name: string }) },
])('$verb without a name does not become one of every sandbox', async ({ call }) => {
  await client.sandboxes.objects.create({ metadata: { name: 'one' }, spec: { podTemplate } } as Sandbox)
  cluster.requests.length = 0
  await expect(call()).rejects.toMatchObject({ code: 'BadRequest', message: expect.stringContaining('without a name') })
  expect(cluster.requests).toEqual([])
})

it.each<{ what: string; argv: unknown; options?: object; says: RegExp }>([
  { what: 'a script', argv: 'echo hi', says: /array of arguments: a script for a shell goes to shell\(\)/ },
  { what: 'nothing', argv: undefined, says: /array of arguments$/ },
  { what: 'no arguments', argv: [], says: /at least one argument/ },
  { what: 'a program without a name', argv: [''], says: /has no name/ },
  { what: 'a number', argv: ['echo', 5], says: /are strings/ },
  {
    what: 'a time limit that is no number',
    argv: ['true'],
    options: { timeoutMs: Number.NaN },
    says: /time limit of NaN/,
  },
  {
    what: 'an output limit that is no number',
    argv: ['true'],
    options: { maxOutputBytes: Number.NaN },
    says: /limit of NaN bytes/,
  },
  { what: 'an output limit below zero', argv: ['true'], options: { maxOutputBytes: -1 }, says: /limit of -1 bytes/ },
  { what: 'a number as standard input', argv: ['cat'], options: { stdin: 5 }, says: /stdin is text, bytes, or true/ },
  {
    what: 'a list as standard input',
    argv: ['cat'],
    options: { stdin: [1, 2] },
    says: /stdin is text, bytes, or true/,
  },
])('a command of $what is refused before it is sent', async ({ argv, options, says }) => {
  await client.sandboxes.objects.create({ metadata: { name: 'one' }, spec: { podTemplate } } as Sandbox)
  const sandbox = await client.sandboxes.get('one')
  cluster.requests.length = 0
  expect(() => sandbox.exec(argv as string[], options)).toThrow(says)
  expect(cluster.requests).toEqual([])
})

it.each<{ way: string; run: (name: string) => Promise<unknown> }>([
  { way: 'the handle', run: async (name) => await (await client.sandboxes.get(name)).exec(['true']) },
  { way: "the kubelet's exec", run: (name) => client.sandboxes.exec({ name }, ['true']) },
])('a command in a suspended sandbox says so, by $way', async ({ run }) => {
  const spec = { podTemplate, operatingMode: 'Suspended' as const }
  await client.sandboxes.objects.create({ metadata: { name: 'one' }, spec } as Sandbox)
  await expect(run('one')).rejects.toMatchObject({
    code: 'SandboxNotReady',
    message: 'sandbox "one" is suspended',
  })
})

it.each([
  { asked: undefined, limit: undefined },
  { asked: 0, limit: 0 },
  { asked: 1.5, limit: 2 },
  { asked: 2 ** 31 - 1, limit: 2 ** 31 - 1 },
  { asked: 2 ** 31, limit: undefined },
  { asked: Number.POSITIVE_INFINITY, limit: undefined },
])('a time limit of $asked ms is one of $limit for a timer', ({ asked, limit }) => {
  expect(timeLimit(asked)).toBe(limit)
})

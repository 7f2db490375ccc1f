import { load } from 'js-yaml'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { configMap, configMaps, openServer, type ServerCaller } from '../testing/server-caller.test-suite.js'

const YAML = 'application/yaml'
const TABLE = 'as=Table;g=meta.k8s.io;v=v1'
const DISCOVERY = 'as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2'

let api: ServerCaller
beforeAll(async () => {
  api = await openServer()
  await api.call(
    'POST',
    configMaps,
    configMap('one', { data: { yes: 'on', mode: '0644', time: '12:30', text: 'a\nb\n' } }),
  )
})
afterAll(() => api.server.close())

async function ask(
  path: string,
  headers: Record<string, string>,
): Promise<{ status: number; type: string; text: string }> {
  const { status, response } = await api.call('GET', path, undefined, '', headers)
  const { body } = response
  const text = body.type === 'object' ? body.json() : body.type === 'bytes' ? Buffer.from(body.bytes).toString() : ''
  return { status, type: response.headers['content-type'] ?? '', text }
}

describe('answers in YAML', () => {
  it.each<{ what: string; path: string; kind: string; accept?: string; status?: number; type?: string }>([
    { what: 'an object', path: `${configMaps}/one`, kind: 'ConfigMap' },
    { what: 'a list', path: configMaps, kind: 'ConfigMapList' },
    { what: 'a table', path: configMaps, kind: 'Table', accept: `${YAML};${TABLE}` },
    { what: 'a refusal', path: `${configMaps}/none`, kind: 'Status', status: 404 },
    { what: 'a group', path: '/apis/apps', kind: 'APIGroup' },
    { what: 'what is served of a version', path: '/api/v1', kind: 'APIResourceList' },
    {
      what: 'aggregated discovery',
      path: '/apis',
      kind: 'APIGroupDiscoveryList',
      accept: `${YAML};${DISCOVERY}`,
      type: `${YAML};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList`,
    },
  ])('$what', async ({ path, kind, accept = YAML, status = 200, type = YAML }) => {
    const answer = await ask(path, { accept })
    expect([answer.status, answer.type]).toEqual([status, type])
    expect(load(answer.text)).toMatchObject({ kind })
  })

  it('say the same as in JSON, and quote what a reader could mistake', async () => {
    const { text } = await ask(`${configMaps}/one`, { accept: YAML })
    expect(load(text)).toEqual(JSON.parse((await ask(`${configMaps}/one`, {})).text))
    expect(text).toContain(
      'data:\n  mode: "0644"\n  text: |\n    a\n    b\n  time: "12:30"\n  "yes": "on"\nkind: ConfigMap\n',
    )
    expect(text).toContain('\n  managedFields:\n  - apiVersion: v1\n')
  })

  it('answers a write', async () => {
    const { response } = await api.call('POST', `${configMaps}?dryRun=All`, configMap('two'), undefined, {
      accept: YAML,
    })
    expect([response.status, response.headers['content-type']]).toEqual([201, YAML])
  })
})

describe('which of several formats', () => {
  it.each<{ accept: string; path?: string; status?: number; type?: string; kind?: string }>([
    { accept: 'application/yaml;q=0.1, application/json;q=0.9', type: 'application/json' },
    { accept: 'application/json;q=0.1, application/yaml', type: YAML },
    { accept: 'text/html, */*;q=0.1', type: 'application/json' },
    { accept: 'application/json;q=0, application/yaml', type: YAML },
    { accept: `application/json;q=0.1, application/json;${TABLE};q=0.9`, kind: 'Table' },
    { accept: `application/yaml;as=Nope;g=meta.k8s.io;v=v1, application/json`, type: 'application/json' },
    { accept: 'application/vnd.kubernetes.protobuf', type: 'application/json' },
    { accept: 'application/xml', status: 406 },
    { accept: 'application/json;as=Table;v=v1', status: 406 },
    { accept: 'application/json;as=Table;g=meta.k8s.io', status: 406 },
    { accept: 'application/json;as=Table;g=other;v=v1', status: 406 },
    { accept: 'application/xml', path: '/api', status: 406 },
    { accept: 'application/xml', path: '/apis/apps', status: 406 },
    { accept: YAML, path: `${configMaps}?watch=1`, status: 406 },
    { accept: `application/json;${TABLE}`, path: `${configMaps}?includeObject=Nope`, status: 400 },
  ])('$accept of $path: $status $type $kind', async ({ accept, path = configMaps, status = 200, type, kind }) => {
    const answer = await ask(path, { accept })
    expect(answer.status).toBe(status)
    if (type) expect(answer.type).toBe(type)
    if (kind) expect(JSON.parse(answer.text).kind).toBe(kind)
  })
})

describe('indented for people', () => {
  it.each<{ query: string; agent: string; isIndented: boolean }>([
    { query: '', agent: 'kubectl/v1.33', isIndented: false },
    { query: '?pretty=true', agent: 'kubectl/v1.33', isIndented: true },
    { query: '?pretty', agent: 'kubectl/v1.33', isIndented: false },
    { query: '', agent: 'curl/8.5.0', isIndented: true },
    { query: '', agent: 'Mozilla/5.0 (X11)', isIndented: true },
    { query: '?pretty=false', agent: 'curl/8.5.0', isIndented: false },
  ])('$query for $agent: $isIndented', async ({ query, agent, isIndented }) => {
    const { text } = await ask(`${configMaps}/one${query}`, { 'user-agent': agent })
    expect(text.startsWith('{\n  "')).toBe(isIndented)
    expect(JSON.parse(text).kind).toBe('ConfigMap')
  })
})

it('items of built-in kinds do not repeat what the list is, those of custom kinds do', async () => {
  const list = JSON.parse((await ask(configMaps, {})).text)
  expect(Object.keys(list.items[0])).toEqual(['metadata', 'data'])
  const { value } = await api.call('GET', configMaps)
  expect(value.items[0]).toMatchObject({ kind: 'ConfigMap', apiVersion: 'v1' })
})

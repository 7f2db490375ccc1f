import { silentLogger } from '@corral/ports'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { Registry } from 'prom-client'
import { beforeAll, expect, it } from 'vitest'
import { type AppOptions, createApp } from './app.js'

// A client that is generated from the document refuses what its schemas refuse. So requests the server takes are put
// before another implementation of JSON Schema than the one that wrote them.

interface Document {
  paths: Record<string, Record<string, object>>
}
let app: ReturnType<typeof createApp>
let document: Document
let ajv: Ajv2020

beforeAll(async () => {
  const service = new Proxy({}, { get: () => async () => ({}) })
  const platform = new Proxy({ settings: service }, { get: (own, key) => Reflect.get(own, key) ?? (async () => ({})) })
  app = createApp({
    tasks: service,
    projects: service,
    environments: service,
    platform,
    token: 'secret',
    isReady: () => true,
    registry: new Registry(),
    version: '0',
    log: silentLogger,
  } as unknown as AppOptions)
  document = (await (await app.request('/openapi.json')).json()) as Document
  ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false })
  ajv.addSchema(document, 'api')
})

/** Every schema of the document that has a pattern, with where it stands. */
function patterns(value: unknown, at = '#'): { at: string; pattern: string }[] {
  if (typeof value !== 'object' || value === null) return []
  const own = 'pattern' in value && typeof value.pattern === 'string' ? [{ at, pattern: value.pattern }] : []
  return [...own, ...Object.entries(value).flatMap(([key, each]) => patterns(each, `${at}/${key}`))]
}

it('no pattern ends in the flags of a regular expression, which another reader takes for letters', () => {
  const found = patterns(document)
  expect(found.length).toBeGreaterThan(20)
  expect(found.filter(({ pattern }) => !/^\^.*\$$/.test(pattern))).toEqual([])
  for (const { pattern } of found) expect(() => new RegExp(pattern, 'u')).not.toThrow()
})

const repo = '/src/app'
const ada = { name: 'Ada', email: 'ada@engines.example' }
const egress = ['packages', 'Files.Example.com:443', '*.example.org:8443']
it.each<[string, object]>([
  [
    'POST /tasks',
    {
      repo,
      task: 'Grüße\nand more',
      project: 'shop.web-1',
      part: 'web-app',
      egress,
      setup_egress: egress,
      author: ada,
      committer: ada,
      checks: [{ name: 'unit.tests_1', command: 'npm test' }],
      files: [{ path: 'a.txt', content: 'YQ==', mode: '0755' }],
      mcp_servers: [
        { name: 'Docs_1', command: 'docs' },
        { name: 'more', url: 'https://mcp.example.com/' },
      ],
      sandbox: { pool: 'fast.pool-1', template: 'node-22', provider: 'staging' },
      runtime_class_name: 'gvisor.v2',
    },
  ],
  ['POST /projects', { name: 'shop.web', repo, egress, author: ada, checks: [{ name: 'a', command: 'true' }] }],
  ['POST /environments', { repo, part: 'web', sandbox: { pool: 'default' } }],
  ['PATCH /settings', { context: 'arn:aws:eks:eu-west-1:1234:cluster/größe @ büro', namespace: 'agents' }],
  ['PATCH /settings', { context: null, runtime_class: 'kata' }],
  ['POST /settings/test', { settings: { context: 'kind-dev' } }],
  ['PATCH /pools/default', { replicas: 3 }],
  ['PUT /secrets/anthropic', { value: 'sk-1' }],
])('%s is accepted by the document where the server accepts it', async (request, body) => {
  const [method = '', path = ''] = request.split(' ')
  const answer = await app.request(path, {
    method,
    headers: { authorization: 'Bearer secret', 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  // What the services behind it do is no matter here: the request was not refused.
  expect([400, 415, 422], await answer.clone().text()).not.toContain(answer.status)

  const named = Object.keys(document.paths).find((each) => pathPattern(each).test(path)) ?? path
  const parts = ['paths', named, method.toLowerCase(), 'requestBody', 'content', 'application/json', 'schema']
  const pointer = parts.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')))
  const validate = ajv.compile({ $ref: `api#/${pointer.join('/')}` })
  expect(validate(body), ajv.errorsText(validate.errors)).toBe(true)
})

const pathPattern = (path: string): RegExp => new RegExp(`^${path.replaceAll(/\{[^}]+\}/g, '[^/]+')}$`)

import { describe, expect, it } from 'vitest'
import { clientEnvironment } from './client-environment.js'
import { endpointProvider, endpointSchema } from './endpoint.js'
import { findProvider, providers } from './provider-registry.js'
import { createMeter, settleUsage } from './usage-meter.js'

// Each provider as sandboxes and their clients meet it, whole: what is not in a table is closed.

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE']
const paths = [
  '/',
  '/v1/messages',
  '/v1/messages/',
  '/v1/messages/count_tokens',
  '/v1/messages/batches',
  '/v1/models',
  '/v1/models/m',
  '/v1/responses',
  '/v1/responses/r1',
  '/v1/chat/completions',
  '/v1/files',
  '/v1beta/models',
  ...['generateContent', 'streamGenerateContent', 'countTokens', 'batchGenerateContent'].flatMap((action) => [
    `/v1beta/models/gemini-2.5-pro:${action}`,
    `/v1/models/m_1:${action}`,
    `/v2/models/m:${action}`,
    `/v1beta/models/m:${action}/x`,
    `/x/v1beta/models/m:${action}`,
    `/v1beta/models/:${action}`,
  ]),
]
const open: Record<string, Record<string, 'call' | 'aside'>> = {
  anthropic: {
    'POST /v1/messages': 'call',
    'POST /v1/messages/count_tokens': 'aside',
    ...{ 'GET /': 'aside', 'HEAD /': 'aside', 'GET /v1/models': 'aside', 'HEAD /v1/models': 'aside' },
  },
  openai: { 'POST /v1/responses': 'call', 'POST /v1/chat/completions': 'call', 'GET /v1/models': 'aside' },
  google: {
    ...{ 'POST /v1beta/models/gemini-2.5-pro:generateContent': 'call', 'POST /v1/models/m_1:generateContent': 'call' },
    'POST /v1beta/models/gemini-2.5-pro:streamGenerateContent': 'call',
    'POST /v1/models/m_1:streamGenerateContent': 'call',
    'POST /v1beta/models/gemini-2.5-pro:countTokens': 'aside',
    'POST /v1/models/m_1:countTokens': 'aside',
    ...{ 'GET /v1beta/models': 'aside', 'GET /v1/models': 'aside' },
  },
}

describe.each(Object.keys(open))('%s', (name) => {
  const provider = findProvider(name)!

  it('has these routes open to sandboxes, and no others', () => {
    const found = methods.flatMap((method) =>
      paths.flatMap((path) => {
        const route = provider.routeOf(method, path)
        return route ? [[`${method} ${path}`, route]] : []
      }),
    )
    expect(Object.fromEntries(found)).toEqual(open[name])
  })
})

it('every provider of the registry is in the tables', () => {
  expect([...providers.keys()].sort()).toEqual(Object.keys(open).sort())
})

describe('an error of the broker', () => {
  it.each([
    { of: 'anthropic', words: { 400: 'invalid_request_error', 401: 'authentication_error', 403: 'permission_error' } },
    { of: 'anthropic', words: { 413: 'request_too_large', 429: 'rate_limit_error', 500: 'api_error' } },
  ])('in the shape of $of: $words', ({ of, words }) => {
    for (const [status, type] of Object.entries(words))
      expect(findProvider(of)!.errorBody(Number(status), 'why')).toEqual({
        type: 'error',
        error: { type, message: 'why' },
      })
  })

  it.each([
    [400, 'invalid_request_error'],
    [401, 'authentication_error'],
    [403, 'permission_error'],
    [413, 'invalid_request_error'],
    [429, 'rate_limit_error'],
    [502, 'server_error'],
  ])('in the shape of openai: %i is %s', (status, type) => {
    const error = { message: 'why', type, code: null, param: null }
    expect(findProvider('openai')!.errorBody(status, 'why')).toEqual({ error })
  })

  it.each([
    [400, 'INVALID_ARGUMENT'],
    [401, 'UNAUTHENTICATED'],
    [403, 'PERMISSION_DENIED'],
    [413, 'INVALID_ARGUMENT'],
    [429, 'RESOURCE_EXHAUSTED'],
    [502, 'INTERNAL'],
  ])('in the shape of google: %i is %s', (code, status) => {
    expect(findProvider('google')!.errorBody(code, 'why')).toEqual({ error: { code, message: 'why', status } })
  })
})

it.each([
  { of: 'anthropic', status: 503, body: 'overloaded', busy: true },
  { of: 'anthropic', status: 503, body: 'maintenance', busy: false },
  { of: 'anthropic', status: 500, body: 'overloaded', busy: false },
  { of: 'anthropic', status: 429, body: 'CREDIT BALANCE', busy: false },
  ...['openai', 'google'].flatMap((of) => [
    { of, status: 529, body: '', busy: true },
    { of, status: 503, body: '', busy: true },
    { of, status: 500, body: '', busy: false },
    { of, status: 400, body: '', busy: false },
    { of, status: 429, body: '', busy: true },
  ]),
])('$of is worth another try after $status "$body": $busy', ({ of, status, body, busy }) => {
  expect(findProvider(of)!.isOverloaded(status, body)).toBe(busy)
})

describe('programs find the broker by these variables', () => {
  it.each([
    ['anthropic', { ANTHROPIC_BASE_URL: 'http://b', ANTHROPIC_AUTH_TOKEN: 't' }],
    ['openai', { OPENAI_BASE_URL: 'http://b/v1', OPENAI_API_KEY: 't' }],
    ['google', { GOOGLE_GEMINI_BASE_URL: 'http://b', GEMINI_API_KEY: 't' }],
  ])('%s', (name, variables) => {
    expect(findProvider(name)!.clientEnvironment('http://b', 't')).toEqual(variables)
    expect(clientEnvironment({ kind: name, baseUrl: 'http://b', token: 't' })).toEqual(variables)
  })
})

it('a provider that is not known has no variables', () => {
  expect(clientEnvironment({ kind: 'x', baseUrl: 'http://b', token: 't' })).toEqual({})
})

describe('a meter', () => {
  const seen = (contentType: string, chunks: string[]) => {
    const said: unknown[] = []
    const meter = createMeter({ contentType, path: '/' }, (message) => said.push(message))
    for (const chunk of chunks) meter.push(Buffer.from(chunk))
    meter.end()
    return said
  }
  const stream = 'text/event-stream; charset=utf-8'
  it('reads the data of events and nothing else', () => {
    const text =
      'event: x\ndata: {"a":1}\n\n: note\nid: 7\ndata:{"b":2}\ndata: [DONE]\ndata: 7\n data: {"c":3}\ndata: {"d":4}'
    expect(seen(stream, [text])).toEqual([{ a: 1 }, { b: 2 }, { d: 4 }])
  })

  it('gives an event of more than 256 KiB up, and goes on with the next', () => {
    const long = `data: {"long":"${'x'.repeat(256 * 1024)}`
    expect(seen(stream, [long, '"}\ndata: {"a":1}\n'])).toEqual([{ a: 1 }])
    expect(seen(stream, [long.slice(0, 200_000), '"}\n'])).toHaveLength(1)
  })

  it('reads one document of at most 4 MiB', () => {
    const of = (length: number): string => `{"a":"${'x'.repeat(length - 8)}"}`
    const most = 4 * 1024 * 1024
    expect(seen('application/json', [of(most).slice(0, 100), of(most).slice(100)])).toHaveLength(1)
    expect(seen('application/json', [of(most + 1)])).toEqual([])
    expect(seen('application/json', ['[1]'])).toEqual([])
  })

  it.each([
    { what: 'nothing was answered', metered: {}, usage: undefined },
    {
      what: 'an answer broke off without counts',
      metered: { outputCharacters: 41, model: 'told' },
      usage: { inputTokens: 3, outputTokens: 11, cacheReadTokens: 0, cacheWriteTokens: 0, model: 'told' },
    },
    {
      what: 'an answer broke off without a name of the model',
      metered: { outputCharacters: 4 },
      usage: { inputTokens: 3, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, model: 'asked' },
    },
    {
      what: 'an answer broke off after counts',
      metered: {
        outputCharacters: 4,
        model: 'told',
        usage: { inputTokens: 5, outputTokens: 6, cacheReadTokens: 7, cacheWriteTokens: 8, model: 'counted' },
      },
      usage: { inputTokens: 5, outputTokens: 6, cacheReadTokens: 7, cacheWriteTokens: 8, model: 'counted' },
    },
  ])('when $what', ({ metered, usage }) => {
    const settled = settleUsage(
      { usage: undefined, isFinal: false, outputCharacters: 0, ...metered },
      { sentBytes: 10, model: 'asked' },
    )
    expect(settled).toEqual(usage && { usage, isEstimated: true })
  })
})

describe('an endpoint', () => {
  const good = { name: 'local-1', kind: 'openai', base_url: 'http://127.0.0.1:11434/v1' }
  it.each([good, { ...good, base_url: 'https://x.example/v1' }, { ...good, name: 'a'.repeat(41) }])(
    'takes $name at $base_url',
    (endpoint) => {
      expect(endpointSchema.parse(endpoint)).toEqual(endpoint)
    },
  )

  const letters = 'must be lower-case letters, digits and dashes, beginning with a letter'
  it.each<{ what: string; more: object; says: string }>([
    { what: 'the name of a provider', more: { name: 'google' }, says: 'is the name of a provider' },
    { what: 'a long name', more: { name: 'a'.repeat(42) }, says: letters },
    { what: 'a name that begins with a digit', more: { name: '1a' }, says: letters },
    { what: 'capitals', more: { name: 'Local' }, says: letters },
    { what: 'a line break behind a name', more: { name: 'local\n' }, says: letters },
    { what: 'a kind that is not known', more: { kind: 'x' }, says: 'must be one of anthropic, openai, google' },
    { what: 'a file', more: { base_url: 'file:///etc/passwd' }, says: 'must be an http:// or https:// address' },
    {
      what: 'a scheme that begins like ours',
      more: { base_url: 'httpsx://a' },
      says: 'must be an http:// or https:// address',
    },
    {
      what: 'a scheme that ends like ours',
      more: { base_url: 'xhttp://a' },
      says: 'must be an http:// or https:// address',
    },
    {
      what: 'a very long address',
      more: { base_url: `http://x/${'a'.repeat(2_048)}` },
      says: 'at most 2048 characters',
    },
    { what: 'a field more', more: { key: 'x' }, says: 'key' },
  ])('refuses $what', ({ more, says }) => {
    const { error } = endpointSchema.safeParse({ ...good, ...more })
    expect(error?.issues.map(({ message }) => message).join('; ')).toContain(says)
  })

  it('of a kind that is not known cannot be used, and one of a known kind has its own name and secret', () => {
    expect(() => endpointProvider({ ...good, kind: 'x' })).toThrow('there is no provider "x"')
    expect(endpointProvider(good)).toMatchObject({
      ...{ name: 'local-1', title: 'local-1', defaultBaseUrl: good.base_url, secret: 'endpoint-local-1' },
      ...{ keyVariable: undefined, baseUrlVariable: undefined, isKeyOptional: true, prices: {} },
    })
  })
})

import { describe, expect, it } from 'vitest'
import { endpointProvider, endpointSchema } from './endpoint.js'
import { costOf } from './model-price.js'
import { findProvider, providers } from './provider-registry.js'
import { settleUsage } from './usage-meter.js'

const sse = (...events: object[]): Buffer =>
  Buffer.from(events.map((event) => `event: x\ndata: ${JSON.stringify(event)}\n\n`).join(''))

function meter(name: string, path: string, chunks: Uint8Array[], contentType = 'text/event-stream') {
  const meter = findProvider(name)!.createMeter({ contentType, path })
  for (const chunk of chunks) meter.push(chunk)
  return settleUsage(meter.end(), { sentBytes: 400, model: 'asked' })
}

const counts = (inputTokens: number, outputTokens: number, cacheReadTokens = 0, cacheWriteTokens = 0) => ({
  inputTokens,
  outputTokens,
  cacheReadTokens,
  cacheWriteTokens,
})

const claudeStart = {
  type: 'message_start',
  message: { model: 'claude-x', usage: { input_tokens: 11, cache_read_input_tokens: 3, output_tokens: 1 } },
}
const claudeText = { type: 'content_block_delta', delta: { type: 'text_delta', text: 'x'.repeat(40) } }
const responsesText = { type: 'response.output_text.delta', delta: 'x'.repeat(40) }
const responsesEnd = {
  type: 'response.completed',
  response: {
    model: 'gpt-x',
    usage: { input_tokens: 11, input_tokens_details: { cached_tokens: 2 }, output_tokens: 7 },
  },
}
const chatText = { model: 'm', choices: [{ delta: { content: 'x'.repeat(40) } }] }
const chatEnd = {
  model: 'm',
  choices: [],
  usage: { prompt_tokens: 11, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 2 } },
}
const geminiText = {
  candidates: [{ content: { parts: [{ text: 'x'.repeat(40) }] } }],
  usageMetadata: { promptTokenCount: 11, candidatesTokenCount: 1 },
}
const geminiEnd = {
  candidates: [{ content: { parts: [] }, finishReason: 'STOP' }],
  usageMetadata: {
    promptTokenCount: 11,
    candidatesTokenCount: 7,
    thoughtsTokenCount: 1,
    cachedContentTokenCount: 2,
  },
}
const stream = '/v1beta/models/gemini-2.5-pro:streamGenerateContent'

describe('usage is read from what goes by', () => {
  it.each<{ what: string; of: [string, string, Uint8Array[], string?]; usage: object; isEstimated: boolean }>([
    {
      what: 'a whole answer of Messages',
      of: ['anthropic', '/v1/messages', [sse(claudeStart, { type: 'message_delta', usage: { output_tokens: 7 } })]],
      usage: { model: 'claude-x', ...counts(11, 7, 3) },
      isEstimated: false,
    },
    {
      what: 'one of Messages that broke off',
      of: ['anthropic', '/v1/messages', [sse(claudeStart, claudeText)]],
      usage: { model: 'claude-x', ...counts(11, 10, 3) },
      isEstimated: true,
    },
    {
      what: 'a document of Messages',
      of: [
        'anthropic',
        '/v1/messages',
        [Buffer.from(JSON.stringify({ ...claudeStart.message, type: 'message' }))],
        'application/json',
      ],
      usage: { model: 'claude-x', ...counts(11, 1, 3) },
      isEstimated: false,
    },
    {
      what: 'a whole answer of Responses',
      of: ['openai', '/v1/responses', [sse(responsesText, responsesEnd)]],
      usage: { model: 'gpt-x', ...counts(9, 7, 2) },
      isEstimated: false,
    },
    {
      what: 'one of Responses that broke off',
      of: ['openai', '/v1/responses', [sse(responsesText)]],
      usage: { model: 'asked', ...counts(100, 10) },
      isEstimated: true,
    },
    {
      what: 'a whole answer of Chat Completions',
      of: ['openai', '/v1/chat/completions', [sse(chatText, chatEnd), Buffer.from('data: [DONE]\n\n')]],
      usage: { model: 'm', ...counts(9, 7, 2) },
      isEstimated: false,
    },
    {
      what: 'one of Chat Completions whose client asked for no counts',
      of: ['openai', '/v1/chat/completions', [sse(chatText), Buffer.from('data: [DONE]\n\n')]],
      usage: { model: 'm', ...counts(100, 10) },
      isEstimated: true,
    },
    {
      what: 'a whole answer of Gemini',
      of: ['google', stream, [sse(geminiText, geminiEnd)]],
      usage: { model: 'gemini-2.5-pro', ...counts(9, 8, 2) },
      isEstimated: false,
    },
    {
      what: 'one of Gemini that broke off',
      of: ['google', stream, [sse(geminiText)]],
      usage: { model: 'gemini-2.5-pro', ...counts(11, 10) },
      isEstimated: true,
    },
  ])('$what', ({ of, usage, isEstimated }) => {
    expect(meter(...of)).toEqual({ usage, isEstimated })
    const bytes = Buffer.concat(of[2])
    const single = [...bytes].map((byte) => Uint8Array.of(byte))
    expect(meter(of[0], of[1], single, of[3])).toEqual({ usage, isEstimated })
  })

  it('an answer of nothing is no usage', () => {
    expect(meter('openai', '/v1/responses', [])).toBeUndefined()
    expect(meter('anthropic', '/v1/messages', [Buffer.from('not json')], 'application/json')).toBeUndefined()
  })
})

describe('routes', () => {
  it.each([
    { of: 'anthropic', method: 'POST', path: '/v1/messages', route: 'call' },
    { of: 'anthropic', method: 'POST', path: '/v1/messages/count_tokens', route: 'aside' },
    { of: 'anthropic', method: 'HEAD', path: '/', route: 'aside' },
    { of: 'anthropic', method: 'GET', path: '/v1/organizations', route: undefined },
    { of: 'anthropic', method: 'DELETE', path: '/v1/messages', route: undefined },
    { of: 'openai', method: 'POST', path: '/v1/responses', route: 'call' },
    { of: 'openai', method: 'POST', path: '/v1/chat/completions', route: 'call' },
    { of: 'openai', method: 'POST', path: '/v1/files', route: undefined },
    { of: 'openai', method: 'GET', path: '/v1/responses', route: undefined },
    { of: 'google', method: 'POST', path: stream, route: 'call' },
    { of: 'google', method: 'POST', path: '/v1beta/models/m:countTokens', route: 'aside' },
    { of: 'google', method: 'POST', path: '/v1beta/models/../files:generateContent', route: undefined },
    { of: 'google', method: 'POST', path: '/v1beta/tunedModels', route: undefined },
  ])('$of: $method $path is $route', ({ of, method, path, route }) => {
    expect(findProvider(of)!.routeOf(method, path)).toBe(route)
  })
})

describe('keys', () => {
  const authorized = (name: string, key: string, headers: Record<string, string> = {}) => {
    const all: Record<string, string | string[] | undefined> = { ...headers }
    findProvider(name)!.authorize(all, key)
    return all
  }
  it('go where each provider wants them', () => {
    expect(authorized('anthropic', 'sk-ant-api03-x')).toEqual({ 'x-api-key': 'sk-ant-api03-x' })
    expect(authorized('openai', 'sk-x')).toEqual({ authorization: 'Bearer sk-x' })
    expect(authorized('google', 'AI-x')).toEqual({ 'x-goog-api-key': 'AI-x' })
  })

  it('the token of a Claude subscription is sent the way Claude Code sends it', () => {
    expect(authorized('anthropic', 'sk-ant-oat01-x', { 'anthropic-beta': 'a-1,oauth-2025-04-20' })).toEqual({
      authorization: 'Bearer sk-ant-oat01-x',
      'anthropic-beta': 'a-1,oauth-2025-04-20,extended-cache-ttl-2025-04-11',
    })
  })
})

describe('a provider that is busy', () => {
  it.each([
    { of: 'anthropic', status: 529, body: '', busy: true },
    { of: 'anthropic', status: 429, body: '{"error":{"type":"rate_limit_error"}}', busy: true },
    { of: 'anthropic', status: 429, body: 'Your credit balance is too low', busy: false },
    { of: 'openai', status: 429, body: '{"error":{"code":"rate_limit_exceeded"}}', busy: true },
    { of: 'openai', status: 429, body: '{"error":{"code":"insufficient_quota"}}', busy: false },
    { of: 'google', status: 503, body: '', busy: true },
    { of: 'google', status: 429, body: 'GenerateRequestsPerDayPerProject', busy: false },
    { of: 'google', status: 500, body: '', busy: false },
  ])('$of with $status "$body": $busy', ({ of, status, body, busy }) => {
    expect(findProvider(of)!.isOverloaded(status, body)).toBe(busy)
  })
})

describe('prices', () => {
  const million = counts(1_000_000, 1_000_000)
  it.each([
    { of: 'anthropic', model: 'claude-opus-4-5', cost: 30 },
    { of: 'anthropic', model: 'claude-opus-4-8[1m]', cost: 30 },
    { of: 'anthropic', model: 'claude-haiku-4-5-20251001', cost: 6 },
    { of: 'openai', model: 'gpt-5-2025-08-07', cost: 11.25 },
    { of: 'openai', model: 'gpt-unknown', cost: undefined },
    { of: 'openai', model: 'toString', cost: undefined },
    { of: 'google', model: 'models/gemini-2.5-flash', cost: 2.8 },
  ])('a million tokens each way of $model cost $cost', ({ of, model, cost }) => {
    expect(costOf(million, model, findProvider(of)!.prices)).toBe(cost)
  })

  it('cached tokens have their own price, and long requests another', () => {
    const prices = findProvider('anthropic')!.prices
    expect(costOf(counts(0, 0, 1_000_000, 1_000_000), 'claude-haiku-4-5', prices)).toBeCloseTo(0.1 + 1.25, 6)
    expect(costOf(counts(200_000, 0), 'claude-sonnet-4-5', prices)).toBeCloseTo(0.6, 6)
    expect(costOf(counts(200_001, 100_000), 'claude-sonnet-4-5', prices)).toBeCloseTo(1.2 + 2.25, 4)
  })

  it.each([...providers.values()])('$name dates every price', ({ prices }) => {
    for (const { asOf } of Object.values(prices)) expect(asOf).toMatch(/^20\d{2}-\d{2}-\d{2}$/)
  })
})

describe('an endpoint', () => {
  it('is its kind at another address, with a key of its own and no known price', () => {
    const local = endpointProvider({ name: 'local', kind: 'openai', base_url: 'http://127.0.0.1:11434/v1' })
    expect(local).toMatchObject({ kind: 'openai', secret: 'endpoint-local', isKeyOptional: true, prices: {} })
    expect(local.keyVariable).toBeUndefined()
    expect(local.routeOf('POST', '/v1/chat/completions')).toBe('call')
  })

  it.each([
    { what: 'the name of a provider', endpoint: { name: 'openai', kind: 'openai', base_url: 'http://x/' } },
    { what: 'a kind nothing speaks', endpoint: { name: 'a', kind: 'x', base_url: 'http://x/' } },
    { what: 'an address that is none', endpoint: { name: 'a', kind: 'openai', base_url: 'file:///etc/passwd' } },
    { what: 'a name that is a path', endpoint: { name: '../a', kind: 'openai', base_url: 'http://x/' } },
  ])('refuses $what', ({ endpoint }) => {
    expect(endpointSchema.safeParse(endpoint).success).toBe(false)
  })
})

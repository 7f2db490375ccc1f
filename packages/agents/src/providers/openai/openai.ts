import { isRateLimit, type Provider } from '../provider.js'
import { createMeter } from '../usage-meter.js'
import { openaiPrices } from './prices.js'
import { readChatUsage, readResponsesUsage } from './usage.js'

const isResponses = (path: string): boolean => path === '/v1/responses'

/** The Responses and the Chat Completions API. */
export const openai: Provider = {
  name: 'openai',
  title: 'OpenAI',
  kind: 'openai',
  defaultBaseUrl: 'https://api.openai.com/v1',
  secret: 'openai',
  keyVariable: 'OPENAI_API_KEY',
  baseUrlVariable: 'OPENAI_BASE_URL',
  keyHeaders: ['authorization'],
  routeOf(method, path) {
    if (method === 'POST' && (isResponses(path) || path === '/v1/chat/completions')) return 'call'
    return method === 'GET' && path === '/v1/models' ? 'aside' : undefined
  },
  authorize(headers, key) {
    headers.authorization = `Bearer ${key}`
  },
  clientEnvironment: (baseUrl, token) => ({ OPENAI_BASE_URL: `${baseUrl}/v1`, OPENAI_API_KEY: token }),
  createMeter: (reply) => createMeter(reply, isResponses(reply.path) ? readResponsesUsage : readChatUsage),
  errorBody: (status, message) => ({
    error: { message, type: errorTypes[status] ?? 'server_error', code: null, param: null },
  }),
  isOverloaded: (status, body) => status === 529 || status === 503 || isRateLimit(status, body, /insufficient_quota/),
  prices: openaiPrices,
}

const errorTypes: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  413: 'invalid_request_error',
  429: 'rate_limit_error',
}

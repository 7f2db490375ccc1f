import { isRateLimit, type Provider } from '../provider.js'
import { createMeter } from '../usage-meter.js'
import { readMessagesUsage } from './messages-usage.js'
import { anthropicPrices } from './prices.js'

/** What a token of a Claude subscription (`claude setup-token`) begins with. */
const subscriptionPrefix = 'sk-ant-oat'
/** Claude Code sends these with such a token; without the first it is refused. */
const subscriptionBetas = ['oauth-2025-04-20', 'extended-cache-ttl-2025-04-11']

export const anthropic: Provider = {
  name: 'anthropic',
  title: 'Anthropic',
  kind: 'anthropic',
  defaultBaseUrl: 'https://api.anthropic.com',
  secret: 'anthropic',
  keyNote: 'key of Anthropic, or the token of a Claude subscription (`claude setup-token`)',
  keyVariable: 'ANTHROPIC_API_KEY',
  baseUrlVariable: 'ANTHROPIC_BASE_URL',
  keyHeaders: ['x-api-key', 'authorization'],
  routeOf(method, path) {
    if (method === 'POST' && path === '/v1/messages') return 'call'
    if (method === 'POST' && path === '/v1/messages/count_tokens') return 'aside'
    const isRead = method === 'GET' || method === 'HEAD'
    return isRead && (path === '/' || path === '/v1/models') ? 'aside' : undefined
  },
  authorize(headers, key) {
    if (!key.startsWith(subscriptionPrefix)) {
      headers['x-api-key'] = key
      return
    }
    headers.authorization = `Bearer ${key}`
    const sent = [headers['anthropic-beta'] ?? []].flat().flatMap((value) => value.split(','))
    const betas = new Set([...sent.map((value) => value.trim()).filter((value) => value !== ''), ...subscriptionBetas])
    headers['anthropic-beta'] = [...betas].join(',')
  },
  clientEnvironment: (baseUrl, token) => ({ ANTHROPIC_BASE_URL: baseUrl, ANTHROPIC_AUTH_TOKEN: token }),
  createMeter: (reply) => createMeter(reply, readMessagesUsage),
  errorBody: (status, message) => ({ type: 'error', error: { type: errorTypes[status] ?? 'api_error', message } }),
  isOverloaded: (status, body) =>
    status === 529 || (status === 503 && body.includes('overloaded')) || isRateLimit(status, body, /credit balance/i),
  prices: anthropicPrices,
}

const errorTypes: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
}

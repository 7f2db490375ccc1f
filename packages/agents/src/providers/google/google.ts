import { isRateLimit, type Provider } from '../provider.js'
import { createMeter } from '../usage-meter.js'
import { googlePrices } from './prices.js'
import { readGenerateUsage } from './usage.js'

const generate = /^\/v1(?:beta)?\/models\/([A-Za-z0-9._-]+):(generateContent|streamGenerateContent|countTokens)$/

/** The Gemini API. */
export const google: Provider = {
  name: 'google',
  title: 'Google',
  kind: 'google',
  defaultBaseUrl: 'https://generativelanguage.googleapis.com',
  secret: 'google',
  keyVariable: 'GEMINI_API_KEY',
  baseUrlVariable: 'GOOGLE_GEMINI_BASE_URL',
  keyHeaders: ['x-goog-api-key', 'authorization'],
  routeOf(method, path) {
    const action = generate.exec(path)?.[2]
    if (method === 'POST' && action !== undefined) return action === 'countTokens' ? 'aside' : 'call'
    return method === 'GET' && (path === '/v1beta/models' || path === '/v1/models') ? 'aside' : undefined
  },
  authorize(headers, key) {
    headers['x-goog-api-key'] = key
  },
  clientEnvironment: (baseUrl, token) => ({ GOOGLE_GEMINI_BASE_URL: baseUrl, GEMINI_API_KEY: token }),
  // The reply names a version of the model; its price goes by the name that was asked for.
  createMeter: (reply) => createMeter(reply, readGenerateUsage(generate.exec(reply.path)?.[1])),
  errorBody: (status, message) => ({
    error: { code: status, message, status: errorStatuses[status] ?? 'INTERNAL' },
  }),
  isOverloaded: (status, body) => status === 529 || status === 503 || isRateLimit(status, body, /PerDay/),
  prices: googlePrices,
}

const errorStatuses: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  413: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
}

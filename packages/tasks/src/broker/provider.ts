/** A model provider behind the broker: where it is, which routes a sandbox may use, how the real key is added. */
export interface Provider {
  readonly name: string
  readonly defaultBaseUrl: string
  /** Name of the platform's secret that holds the key, and of the environment variable that may hold it instead. */
  readonly secret: string
  readonly keyVariable: string
  readonly baseUrlVariable: string
  allows(method: string, path: string): boolean
  authorize(headers: Record<string, string | string[] | undefined>, key: string): void
}

export const anthropic: Provider = {
  name: 'anthropic',
  defaultBaseUrl: 'https://api.anthropic.com',
  secret: 'anthropic',
  keyVariable: 'ANTHROPIC_API_KEY',
  baseUrlVariable: 'ANTHROPIC_BASE_URL',
  allows(method, path) {
    if (path === '/' || path === '/v1/models') return method === 'GET' || method === 'HEAD'
    return method === 'POST' && (path === '/v1/messages' || path === '/v1/messages/count_tokens')
  },
  authorize(headers, key) {
    delete headers.authorization
    headers['x-api-key'] = key
  },
}

export const providers: ReadonlyMap<string, Provider> = new Map([[anthropic.name, anthropic]])

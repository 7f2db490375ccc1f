import type { ApiRequest, ApiResponse, WatchFrame } from '@corral/ports'
import type { KubeObject } from '@corral/resources'
import { systemUser } from '../auth/access.js'
import { type ApiServer, type ApiServerOptions, createApiServer } from '../server/api-server.js'
import { memoryStorage } from '../storage/memory-storage.js'

// biome-ignore lint/suspicious/noExplicitAny: tests read whatever the server answers, by path
export type Answer = { status: number; value: any; response: ApiResponse }

type Headers = Readonly<Record<string, string>>

/** A server and a terse way to call it in process, as an administrator. */
export interface ServerCaller {
  readonly server: ApiServer
  call(method: string, url: string, body?: object, contentType?: string, headers?: Headers): Promise<Answer>
  /** Events of a watch up to `count`, then the watch is given up. */
  events(url: string, count: number): Promise<{ type: string; object: KubeObject }[]>
}

/** Opens a server, in memory unless said otherwise. */
export async function openServer(options: Partial<ApiServerOptions> = {}): Promise<ServerCaller> {
  const server = await createApiServer({ storage: memoryStorage(), schedulesPods: false, ...options })
  const call = async (
    method: string,
    url: string,
    body?: object,
    contentType = 'application/json',
    headers: Headers = {},
  ): Promise<Answer> => {
    const [path = '', search = ''] = url.split('?')
    const request: ApiRequest = {
      method,
      path,
      query: new URLSearchParams(search),
      headers: { 'content-type': contentType, ...headers },
      user: systemUser,
      ...(body ? { body } : {}),
    }
    const response = await server.handle(request)
    return { status: response.status, value: response.body.type === 'object' ? response.body.value : {}, response }
  }
  return {
    server,
    call,
    async events(url, count) {
      const { response } = await call('GET', url)
      if (response.body.type !== 'watch') throw new Error(`${url} did not open a watch: ${response.status}`)
      return take(response.body.frames, count)
    },
  }
}

async function take(frames: AsyncIterable<WatchFrame>, count: number): Promise<{ type: string; object: KubeObject }[]> {
  const events: { type: string; object: KubeObject }[] = []
  for await (const frame of frames) {
    events.push(frame.event)
    if (events.length === count) break
  }
  return events
}

export const MERGE = 'application/merge-patch+json'
export const JSON_PATCH = 'application/json-patch+json'
export const STRATEGIC = 'application/strategic-merge-patch+json'
export const APPLY = 'application/apply-patch+yaml'

export const configMaps = '/api/v1/namespaces/default/configmaps'
export const pods = '/api/v1/namespaces/default/pods'
export const configMap = (name: string, extra: object = {}): object => ({ metadata: { name }, ...extra })
export const pod = (name: string, spec: object = {}): object => ({
  metadata: { name },
  spec: { containers: [{ name: 'c', image: 'example/c:1' }], ...spec },
})

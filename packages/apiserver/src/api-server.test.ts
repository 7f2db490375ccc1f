import type { ApiRequest, ApiResponse, KubeObject } from '@corral/resources'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ApiServer, createApiServer } from './api-server.js'
import { systemUser } from './auth/access.js'
import { memoryStorage } from './storage/memory-storage.js'

let server: ApiServer

beforeEach(async () => {
  server = await createApiServer({ storage: memoryStorage() })
})
afterEach(() => server.close())

async function call(
  method: string,
  url: string,
  body?: object,
  headers: Record<string, string> = {},
): Promise<{ status: number; value: Record<string, unknown> & KubeObject; response: ApiResponse }> {
  const [path = '', search = ''] = url.split('?')
  const request: ApiRequest = {
    method,
    path,
    query: new URLSearchParams(search),
    headers,
    user: systemUser,
    ...(body ? { body } : {}),
  }
  const response = await server.handle(request)
  const value = response.body.type === 'object' ? response.body.value : {}
  return { status: response.status, value: value as Record<string, unknown> & KubeObject, response }
}

const pods = '/api/v1/namespaces/default/pods'
const configMaps = '/api/v1/namespaces/default/configmaps'
const configMap = (name: string, data: Record<string, string> = {}): object => ({ metadata: { name }, data })

describe('create', () => {
  it('31: sets uid, creationTimestamp, version and generation', async () => {
    const pod = { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'x' }] } }
    const { status, value } = await call('POST', pods, pod)
    expect(status).toBe(201)
    expect(value.metadata).toMatchObject({ name: 'p', namespace: 'default', generation: 1 })
    expect(value.metadata?.uid).toMatch(/^[0-9a-f-]{36}$/)
    expect(value.status).toEqual({ phase: 'Pending', qosClass: 'BestEffort' })
    expect(Object.isFrozen(value)).toBe(true)
    expect(pod.metadata).toEqual({ name: 'p' })
  })

  it('33: a second object of the same name is refused', async () => {
    await call('POST', configMaps, configMap('a'))
    const { status, value } = await call('POST', configMaps, configMap('a'))
    expect(status).toBe(409)
    expect(value).toMatchObject({ reason: 'AlreadyExists', details: { name: 'a', kind: 'configmaps' } })
  })

  it('37: an unknown namespace is refused', async () => {
    const { status, value } = await call('POST', '/api/v1/namespaces/nope/configmaps', configMap('a'))
    expect(status).toBe(404)
    expect(value.message).toBe('namespaces "nope" not found')
  })
})

describe('update', () => {
  it('40: a stale version is a conflict', async () => {
    const created = await call('POST', configMaps, configMap('a'))
    await call('PUT', `${configMaps}/a`, configMap('a', { x: '1' }))
    const stale = { ...created.value, data: { x: '2' } }
    const { status, value } = await call('PUT', `${configMaps}/a`, stale)
    expect(status).toBe(409)
    expect(value.message).toBe(
      'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
    )
  })

  it('42: an equal object writes nothing', async () => {
    const created = await call('POST', configMaps, configMap('a', { x: '1' }))
    const { value } = await call('PUT', `${configMaps}/a`, configMap('a', { x: '1' }))
    expect(value.metadata?.resourceVersion).toBe(created.value.metadata?.resourceVersion)
  })

  it('51: a merge patch deletes with null', async () => {
    await call('POST', configMaps, configMap('a', { x: '1', y: '2' }))
    const patch = { data: { x: null } }
    const { value } = await call('PATCH', `${configMaps}/a`, patch, { 'content-type': 'application/merge-patch+json' })
    expect(value.data).toEqual({ y: '2' })
  })
})

describe('watch', () => {
  it('71: delivers create, update and delete in order', async () => {
    const list = await call('GET', configMaps)
    const version = list.value.metadata?.resourceVersion
    await call('POST', configMaps, configMap('a'))
    await call('PUT', `${configMaps}/a`, configMap('a', { x: '1' }))
    await call('DELETE', `${configMaps}/a`)
    const { response } = await call('GET', `${configMaps}?watch=True&resourceVersion=${version}`)
    const types: string[] = []
    if (response.body.type === 'watch') {
      for await (const frame of response.body.frames) {
        types.push(frame.event.type)
        if (types.length === 3) break
      }
    }
    expect(types).toEqual(['ADDED', 'MODIFIED', 'DELETED'])
  })
})

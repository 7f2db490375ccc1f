import { readlinkSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { compiledSupervisor, hasBubblewrap } from '../../isolation/workbench.test-suite.js'
import type { SupervisorProgram } from '../protocol/messages.js'
import { closeNamespace, type Namespace, type NamespaceShape, openListeners } from './namespace.js'
import { SpareNamespaces } from './spare-namespaces.js'

const program = compiledSupervisor()
const usual: NamespaceShape = {
  routes: ['198.18.0.0/15'],
  dns: ['127.0.0.1'],
  listeners: [{ address: '198.18.0.2', port: 8787 }],
}
const other: NamespaceShape = { routes: [], dns: [], listeners: [] }

describe.skipIf(program === undefined || !hasBubblewrap)('namespaces made ahead', () => {
  const supervisor: SupervisorProgram = { kind: 'native', path: program ?? '' }
  let namespaces: SpareNamespaces
  const taken: Namespace[] = []
  let helpers = 0

  beforeEach(() => {
    namespaces = new SpareNamespaces({ supervisor, spares: 2 })
    helpers = 0
  })
  afterEach(() => {
    namespaces.close()
    for (const namespace of taken.splice(0)) closeNamespace(namespace)
  })

  async function take(shape: NamespaceShape, address = '100.64.0.9'): Promise<Namespace> {
    const namespace = await namespaces.take(shape, `${address}/32`, () => {
      helpers++
    })
    taken.push(namespace)
    return namespace
  }
  const name = ({ netFd }: Namespace): string => readlinkSync(`/proc/self/fd/${netFd}`)
  const isLocal = async (namespace: Namespace, address: string): Promise<boolean> => {
    try {
      for (const listener of await openListeners(supervisor, namespace, { listeners: [{ address, port: 80 }] }))
        listener.close()
      return true
    } catch {
      return false
    }
  }

  it('the third pod of a shape finds its namespace made, with its own address and nobody else’s', async () => {
    await take(usual, '100.64.0.7')
    await take(usual, '100.64.0.8')
    expect(helpers).toBe(2)
    await expect.poll(() => namespaces.ready).toBe(2)
    const third = await take(usual, '100.64.0.9')
    expect(helpers).toBe(2)
    expect(third.listeners).toHaveLength(2)
    expect(new Set(taken.map(name)).size).toBe(3)
    expect(await isLocal(third, '100.64.0.9')).toBe(true)
    expect(await isLocal(third, '100.64.0.8')).toBe(false)
  })

  it('a pod of another shape gets none of them', async () => {
    await take(usual)
    await take(usual)
    await expect.poll(() => namespaces.ready).toBe(2)
    const namespace = await take(other)
    expect(helpers).toBe(3)
    expect(namespace.listeners).toEqual([])
    expect(await isLocal(namespace, '198.18.0.3')).toBe(false)
    expect(namespaces.ready).toBe(2)
  })

  it('closing lets those that wait go', async () => {
    await take(usual)
    await take(usual)
    await expect.poll(() => namespaces.ready).toBe(2)
    namespaces.close()
    expect(namespaces.ready).toBe(0)
  })
})

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openServer, type ServerCaller } from '../testing/server-caller.test-suite.js'

let api: ServerCaller
const classes = '/apis/node.k8s.io/v1/runtimeclasses'
beforeAll(async () => {
  api = await openServer()
  for (const body of [
    { metadata: { name: 'plain' }, handler: 'runsc' },
    { metadata: { name: 'heavy' }, handler: 'kata', overhead: { podFixed: { memory: '120Mi', cpu: '250m' } } },
    {
      metadata: { name: 'placed' },
      handler: 'kata',
      scheduling: {
        nodeSelector: { 'kata.example/ready': 'yes' },
        tolerations: [{ key: 'kata', operator: 'Exists' }],
      },
    },
  ])
    expect((await api.call('POST', classes, body)).status).toBe(201)
})
afterAll(() => api.server.close())

let count = 0
const createPod = (spec: object) =>
  api.call('POST', '/api/v1/namespaces/default/pods', {
    metadata: { name: `p${++count}` },
    spec: { containers: [{ name: 'c', image: 'x:1' }], ...spec },
  })

describe('a RuntimeClass', () => {
  it.each([
    { when: 'it has no handler', body: {}, field: 'handler', says: 'a lowercase RFC 1123 label must consist of' },
    { when: 'its handler is no label', body: { handler: 'Run_C' }, field: 'handler', says: 'Invalid value: "Run_C"' },
    {
      when: 'its overhead is negative',
      body: { handler: 'a', overhead: { podFixed: { cpu: '-1' } } },
      field: 'overhead.limits[cpu]',
      says: 'must be greater than or equal to 0',
    },
    {
      when: 'its selector is no label',
      body: { handler: 'a', scheduling: { nodeSelector: { 'a b': 'c' } } },
      field: 'scheduling.nodeSelector',
      says: 'name part must consist of',
    },
  ])('is refused when $when', async ({ body, field, says }) => {
    const { status, value } = await api.call('POST', classes, { metadata: { name: 'bad' }, ...body })
    expect(status).toBe(422)
    expect(value.message).toContain(`RuntimeClass.node.k8s.io "bad" is invalid: ${field}: `)
    expect(value.message).toContain(says)
  })

  it('keeps its handler', async () => {
    const { value } = await api.call('GET', `${classes}/plain`)
    const changed = await api.call('PUT', `${classes}/plain`, { ...value, handler: 'other' })
    expect(changed.status).toBe(422)
    expect(changed.value.message).toContain('handler: Invalid value: "other": field is immutable')
  })

  it('is printed as kubectl prints it', async () => {
    const { value } = await api.call('GET', `${classes}/plain`, undefined, undefined, {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
    })
    expect(value.columnDefinitions.map(({ name }: { name: string }) => name)).toEqual(['Name', 'Handler', 'Age'])
    expect(value.rows[0].cells.slice(0, 2)).toEqual(['plain', 'runsc'])
  })
})

describe('a pod', () => {
  it('that names a RuntimeClass which is not there is refused in the words of Kubernetes', async () => {
    const { status, value } = await createPod({ runtimeClassName: 'gvisor' })
    expect({ status, value }).toMatchObject({
      status: 403,
      value: {
        reason: 'Forbidden',
        message: `pods "p${count}" is forbidden: pod rejected: RuntimeClass "gvisor" not found`,
        details: { name: `p${count}`, kind: 'pods' },
      },
    })
  })

  it('that names one which is there is taken', async () => {
    expect(await createPod({ runtimeClassName: 'plain' })).toMatchObject({
      status: 201,
      value: { spec: { runtimeClassName: 'plain' } },
    })
  })

  it.each([
    { overhead: undefined, status: 201 },
    { overhead: { cpu: '0.25', memory: '120Mi' }, status: 201 },
    { overhead: { cpu: '1' }, status: 403 },
  ])('takes over the overhead of its class: $overhead → $status', async ({ overhead, status }) => {
    const answer = await createPod({ runtimeClassName: 'heavy', ...(overhead ? { overhead } : {}) })
    expect(answer.status).toBe(status)
    if (status === 201) expect(answer.value.spec.overhead).toEqual({ memory: '120Mi', cpu: '250m' })
    else expect(answer.value.message).toContain("Pod's Overhead doesn't match RuntimeClass's defined Overhead")
  })

  it('has no overhead without a class that defines one', async () => {
    const { status, value } = await createPod({ overhead: { cpu: '1' } })
    expect(status).toBe(403)
    expect(value.message).toContain('Pod Overhead set without corresponding RuntimeClass defined Overhead')
  })

  it('goes where its class may run', async () => {
    const { value } = await createPod({
      runtimeClassName: 'placed',
      nodeSelector: { zone: 'a' },
      tolerations: [{ key: 'kata', operator: 'Exists', effect: 'NoSchedule' }],
    })
    expect(value.spec.nodeSelector).toEqual({ zone: 'a', 'kata.example/ready': 'yes' })
    const kata = value.spec.tolerations.filter(({ key }: { key: string }) => key === 'kata')
    expect(kata).toEqual([{ key: 'kata', operator: 'Exists' }])
  })

  it('that wants to go elsewhere is refused', async () => {
    const nodeSelector = { 'kata.example/ready': 'no' }
    const { status, value } = await createPod({ runtimeClassName: 'placed', nodeSelector })
    expect(status).toBe(403)
    expect(value.message).toContain(
      'conflict: runtimeClass.scheduling.nodeSelector[kata.example/ready] = yes; pod.spec.nodeSelector[kata.example/ready] = no',
    )
  })
})

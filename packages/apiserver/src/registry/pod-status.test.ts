import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MERGE, openServer, pod, pods, type ServerCaller } from '../testing/server-caller.test-suite.js'

const invalidIp = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'
const oneEach = 'may specify no more than one IP for each IP family'

describe('the status of a pod, as kube-apiserver 1.34 takes it', () => {
  let caller: ServerCaller
  let next = 0
  beforeAll(async () => {
    caller = await openServer()
  })
  afterAll(() => caller.server.close())

  const patched = async (...statuses: object[]) => {
    const name = `pod-${next++}`
    await caller.call('POST', pods, pod(name))
    const answers = []
    for (const status of statuses) answers.push(await caller.call('PATCH', `${pods}/${name}/status`, { status }, MERGE))
    return answers.at(-1)!
  }

  it.each<{ when: string; given: object[]; podIP?: string; podIPs?: string[] }>([
    {
      when: 'the first address is copied',
      given: [{ podIPs: [{ ip: '10.0.0.1' }] }],
      podIP: '10.0.0.1',
      podIPs: ['10.0.0.1'],
    },
    {
      when: 'a lone address becomes the list',
      given: [{ podIP: '10.0.0.9' }],
      podIP: '10.0.0.9',
      podIPs: ['10.0.0.9'],
    },
    {
      when: 'the older field is believed where they differ',
      given: [{ podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.2' }] }],
      podIP: '10.0.0.1',
      podIPs: ['10.0.0.1'],
    },
    {
      when: 'two families stand side by side',
      given: [{ podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }] }],
      podIP: '10.0.0.1',
      podIPs: ['10.0.0.1', 'fd00::1'],
    },
    { when: 'both go together', given: [{ podIP: '10.0.0.1' }, { podIP: '', podIPs: null }] },
  ])('$when', async ({ given, podIP, podIPs }) => {
    const { status, value } = await patched(...given)
    expect(status).toBe(200)
    expect([value.status.podIP, value.status.podIPs?.map(({ ip }: { ip: string }) => ip)]).toEqual([podIP, podIPs])
  })

  it.each<{ given: object; field: string; why: string }>([
    { given: { podIP: 'nope' }, field: 'status.podIPs[0]', why: invalidIp },
    { given: { podIPs: [{}] }, field: 'status.podIPs[0]', why: invalidIp },
    { given: { podIPs: [{ ip: '10.0.0.1' }, { ip: '10.0.0.2' }] }, field: 'status.podIPs', why: oneEach },
    { given: { hostIP: 'zzz', hostIPs: [{ ip: 'zzz' }] }, field: 'status.hostIPs[0]', why: invalidIp },
    {
      given: { hostIP: '10.0.0.1', hostIPs: [{ ip: '10.0.0.2' }] },
      field: 'status.hostIPs[0].ip',
      why: 'must be equal to `hostIP`',
    },
    { given: { qosClass: 'Guaranteed' }, field: 'status.qosClass', why: 'field is immutable' },
    { given: { observedGeneration: -1 }, field: 'status.observedGeneration', why: 'must be a non-negative integer' },
    { given: { nominatedNodeName: 'x y' }, field: 'status.nominatedNodeName', why: 'a lowercase RFC 1123 subdomain' },
  ])('refuses $given', async ({ given, field, why }) => {
    const { status, value } = await patched(given)
    expect(status).toBe(422)
    expect(value.details.causes).toMatchObject([{ reason: 'FieldValueInvalid', field }])
    expect(value.message).toContain(why)
  })

  it('keeps what a node agent leaves out: quality of service, observed generation', async () => {
    const { value } = await patched({ observedGeneration: 3 }, { qosClass: null, observedGeneration: null })
    expect(value.status).toMatchObject({ qosClass: 'BestEffort', observedGeneration: 3 })
  })
})

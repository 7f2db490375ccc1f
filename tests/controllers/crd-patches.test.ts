import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createApiServer, memoryStorage } from '@corral/apiserver'
import { inProcessKubeClient } from '@corral/kube'
import { CustomResourceDefinitions, embeddedCrds, type Sandbox, Sandboxes } from '@corral/resources'
import { load } from 'js-yaml'
import { expect, it } from 'vitest'

const file = join(import.meta.dirname, '../../config/crd-patches/1.0.6-name-length.yaml')
const patch = { type: 'json', body: load(readFileSync(file, 'utf8')) as object[] } as const

const sandbox = (name: string, service?: boolean): Sandbox => ({
  apiVersion: 'agents.x-k8s.io/v1beta1',
  kind: 'Sandbox',
  metadata: { name, namespace: 'default' },
  spec: {
    podTemplate: { spec: { containers: [{ name: 'main', image: 'busybox' }] } },
    ...(service !== undefined && { service }),
  },
})

it('the CRD of release 1.0.6 refuses long names where there is a Service, also of Sandboxes that have one', async () => {
  const server = await createApiServer({ storage: memoryStorage(), crds: embeddedCrds() })
  await server.ready
  const client = inProcessKubeClient(server)
  try {
    const [fits, long, older] = ['a'.repeat(63), 'b'.repeat(64), 'c'.repeat(64)] as const
    await client.create(Sandboxes, sandbox(older, true))
    await client.patch(CustomResourceDefinitions, { name: 'sandboxes.agents.x-k8s.io' }, patch)

    await client.create(Sandboxes, sandbox(fits, true))
    await client.create(Sandboxes, sandbox(long))
    await client.create(Sandboxes, sandbox(`${long}-no`, false))
    const refusal = { code: 'Invalid', message: expect.stringContaining('at most 63 characters') }
    await expect(client.create(Sandboxes, sandbox(`${long}-yes`, true))).rejects.toMatchObject(refusal)
    const status = { type: 'merge', body: { status: { service: older } } } as const
    const ref = { name: older, namespace: 'default' }
    await expect(client.patch(Sandboxes, ref, status, { subresource: 'status' })).rejects.toMatchObject(refusal)
  } finally {
    await client.close()
    await server.close()
  }
})

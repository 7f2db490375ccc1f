import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ApiServer, createApiServer, memoryStorage } from '@corral/apiserver'
import { inProcessKubeClient, type KubeClient } from '@corral/kube'
import { embeddedCrds, nameHash, Secrets } from '@corral/resources'
import { load } from 'js-yaml'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { applyObjects, newServerSecret, planInstall } from '../../packages/cli/src/install/install-objects.js'
import { defaultValues } from '../../packages/cli/src/install/install-values.js'
import { installManifests } from '../../packages/cli/src/install/manifests.js'
import { chartFiles } from '../../scripts/generate/chart.js'
import { type Endpoint, mayReach, type Policy } from './policy-evaluator.js'

const deploy = join(import.meta.dirname, '../../deploy')
const manifests = installManifests(defaultValues, { controllers: true }) as { kind: string; spec?: object }[]
const ofKind = <T>(kind: string): T[] => manifests.filter((object) => object.kind === kind) as T[]

describe('S4-P3.6 who may reach whom in the namespace of an installation', () => {
  const template = ofKind<{ spec: { networkPolicy: object } }>('SandboxTemplate')[0]
  const hash = { 'agents.x-k8s.io/sandbox-template-ref-hash': nameHash('default') }
  // The controllers make this one from the template.
  const ofTemplate: Policy = {
    metadata: { namespace: 'corral' },
    spec: { podSelector: { matchLabels: hash }, policyTypes: ['Ingress', 'Egress'], ...template?.spec.networkPolicy },
  }
  const policies = [...ofKind<Policy>('NetworkPolicy'), ofTemplate]
  const pods: Record<string, Endpoint> = {
    server: { namespace: 'corral', labels: { app: 'corral' } },
    sandbox: { namespace: 'corral', labels: hash },
    controller: { namespace: 'corral', labels: { app: 'corral-controller' } },
    test: { namespace: 'corral', labels: { app: 'corral-test' } },
    stranger: { namespace: 'corral', labels: { app: 'stranger' } },
    dns: { namespace: 'kube-system', labels: { 'k8s-app': 'kube-dns' } },
    prometheus: { namespace: 'monitoring', labels: { app: 'prometheus' } },
    elsewhere: { namespace: 'default', labels: { app: 'corral' } },
  }
  it.each<[from: string, to: string, port: number, may: boolean]>([
    ['sandbox', 'server', 8787, true],
    ['sandbox', 'server', 8090, false],
    ['sandbox', 'server', 9090, false],
    ['sandbox', 'sandbox', 8888, false],
    ['sandbox', 'controller', 8080, false],
    ['sandbox', 'stranger', 80, false],
    ['sandbox', 'internet', 443, false],
    ['sandbox', 'internet', 53, false],
    ['sandbox', 'dns', 53, true],
    ['server', 'sandbox', 8888, true],
    ['server', 'sandbox', 22, false],
    ['server', 'internet', 443, true],
    ['server', 'internet', 25, false],
    ['server', 'dns', 53, true],
    ['server', 'test', 9418, true],
    ['controller', 'internet', 6443, true],
    ['controller', 'sandbox', 8888, false],
    ['controller', 'server', 8090, false],
    ['test', 'server', 8090, true],
    ['test', 'sandbox', 8888, false],
    ['stranger', 'server', 8090, false],
    ['stranger', 'server', 8787, false],
    ['stranger', 'sandbox', 8888, false],
    ['stranger', 'internet', 443, false],
    ['prometheus', 'server', 9090, true],
    ['prometheus', 'controller', 8080, true],
    ['prometheus', 'server', 8090, false],
    ['elsewhere', 'server', 8787, false],
    ['elsewhere', 'sandbox', 8888, false],
  ])('%s to %s on port %d: %s', (from, to, port, may) => {
    const source = pods[from]
    const target = to === 'internet' ? to : pods[to]
    if (!source || !target) throw new TypeError('no such pod')
    expect(mayReach(policies, source, target, port, to === 'dns' ? 'UDP' : 'TCP')).toBe(may)
  })
})

describe('S4-P3.6 pods of an installation', () => {
  interface PodSpec {
    securityContext?: { runAsNonRoot?: boolean; seccompProfile?: { type: string } }
    containers: { name: string; securityContext?: Record<string, unknown>; image: string }[]
  }
  const specs = manifests.flatMap(({ kind, spec }): [string, PodSpec][] => {
    const at = spec as { template?: { spec: PodSpec }; podTemplate?: { spec: PodSpec } } | undefined
    const pod = at?.template?.spec ?? at?.podTemplate?.spec
    return pod ? [[kind, pod]] : []
  })

  it('are all found', () =>
    expect(specs.map(([kind]) => kind)).toEqual(['Deployment', 'Deployment', 'SandboxTemplate']))

  it.each(specs)('%s satisfies Pod Security restricted', (_, pod) => {
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
    for (const { securityContext } of pod.containers)
      expect(securityContext).toMatchObject({ allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } })
  })
})

describe('the chart', () => {
  const values = load(readFileSync(join(deploy, 'helm/corral/values.yaml'), 'utf8')) as ChartValues
  const schema = JSON.parse(readFileSync(join(deploy, 'helm/corral/values.schema.json'), 'utf8')) as Schema
  interface Image {
    repository: string
    tag: string
  }
  interface ChartValues {
    image: Image
    server: Record<'maxTasks' | 'agent' | 'logLevel' | 'resources', unknown> & { persistence: { size: string } }
    controllers: { resources: unknown }
    sandbox: { image: Image; warm: unknown; resources: unknown }
    networkPolicy: object
  }
  interface Schema {
    properties?: Record<string, Schema>
    additionalProperties?: boolean | Schema
  }

  it('and the kustomize base are what the generator writes', () => {
    for (const [name, text] of chartFiles()) expect(readFileSync(join(deploy, name), 'utf8'), name).toBe(text)
    const crds = readdirSync(join(deploy, 'helm/corral/crds'))
    const source = join(deploy, '../config/crds/cluster')
    expect(crds).toEqual(readdirSync(source))
    for (const name of crds)
      expect(readFileSync(join(deploy, 'helm/corral/crds', name), 'utf8')).toBe(
        readFileSync(join(source, name), 'utf8'),
      )
  })

  it('has by default what `corral install` applies', () => {
    const { server, controllers, sandbox, networkPolicy } = defaultValues
    const image = (of: Image): string => `${of.repository}:${of.tag}`
    const { image: main, sandbox: box, networkPolicy: net, server: serve } = values
    expect([image(main), image(box.image)]).toEqual([defaultValues.image, sandbox.image])
    expect([serve.maxTasks, serve.agent, serve.logLevel, serve.resources, serve.persistence.size]).toEqual([
      server.maxTasks,
      server.agent,
      server.logLevel,
      server.resources,
      server.storageSize,
    ])
    expect([box.warm, box.resources]).toEqual([sandbox.replicas, sandbox.resources])
    expect(values.controllers.resources).toEqual(controllers.resources)
    expect({ ...net, enabled: undefined }).toEqual({ ...networkPolicy, enabled: undefined })
  })

  it('describes every value in its schema, and takes no other', () => {
    const undescribed = (of: object, by: Schema, path: string): string[] =>
      Object.entries(of).flatMap(([key, value]) => {
        const known = by.properties?.[key]
        if (by.properties && !known) return [`${path}${key}`]
        const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
        return known && isObject ? undescribed(value as object, known, `${path}${key}.`) : []
      })
    expect(undescribed(values, schema, '')).toEqual([])
    expect(schema.additionalProperties).toBe(false)
    for (const name of ['server', 'controllers', 'sandbox', 'networkPolicy', 'ingress', 'drain'])
      expect(schema.properties?.[name]?.additionalProperties, name).toBe(false)
  })
})

describe('corral install', () => {
  let server: ApiServer
  let client: KubeClient
  beforeEach(async () => {
    server = await createApiServer({ storage: memoryStorage(), crds: embeddedCrds() })
    await server.ready
    client = inProcessKubeClient(server)
  })
  afterEach(async () => {
    await client.close()
    await server.close()
  })

  it('says what it will do, does it, and the second time changes nothing but what changed', async () => {
    const first = await planInstall(client, manifests)
    expect(first.filter(({ action }) => action === 'create').map(({ kind }) => kind)).toContain('Deployment')
    const said: string[] = []
    const options = { say: (line: string) => said.push(line), timeoutMs: 240_000 }
    await applyObjects(client, first, options)
    expect(said).toContain('Deployment corral-server applied')
    const second = await planInstall(client, manifests)
    expect(second.every(({ action }) => action === 'apply')).toBe(true)
    await applyObjects(client, second, options)
  })

  it('makes the secret of the server once', async () => {
    await applyObjects(client, await planInstall(client, manifests.slice(0, 1)), { say: () => {}, timeoutMs: 240_000 })
    const secret = (await newServerSecret(client, 'corral')) as { stringData: { token: string } }
    expect(secret.stringData.token).toMatch(/^[0-9a-f]{64}$/)
    await client.create(Secrets, secret as object as { metadata: { name: string; namespace: string } })
    expect(await newServerSecret(client, 'corral')).toBeUndefined()
  })
})

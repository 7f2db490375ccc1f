import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { type Check, check } from '../harness/check.js'
import type { Context } from '../harness/context.js'
import { anyKubectl, kubectlVersions } from '../harness/kubectl.js'
import { pod } from '../harness/objects.js'

const aggregated = (version: string, extra = ''): string =>
  `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList${extra}`

interface Discovered {
  readonly resource: string
  readonly responseKind: { readonly group: string; readonly version: string; readonly kind: string }
  readonly scope: string
  readonly verbs: readonly string[]
  readonly shortNames?: readonly string[]
  readonly subresources?: readonly {
    subresource: string
    responseKind: { group: string; version: string; kind: string }
  }[]
}
interface Group {
  readonly metadata: { readonly name?: string }
  readonly versions: readonly {
    readonly version: string
    readonly freshness: string
    readonly resources: readonly Discovered[]
  }[]
}

async function groups(t: Context): Promise<Group[]> {
  const [core, named] = await Promise.all(['/api', '/apis'].map((path) => t.get(path, { accept: aggregated('v2') })))
  return [core, named].flatMap((answer) => answer!.is(200).items as unknown as Group[])
}

export const discovery: readonly Check[] = [
  check(7, 'plain /api and /apis give the legacy documents', async (t) => {
    const core = (await t.get('/api', { accept: 'application/json' })).is(200)
    deepEqual([core.kind, core.versions], ['APIVersions', ['v1']])
    const named = (await t.get('/apis', { accept: 'application/json' })).is(200)
    equal(named.kind, 'APIGroupList')
    const names = (named.groups as { name: string; preferredVersion: { groupVersion: string } }[]).map(
      ({ name }) => name,
    )
    for (const name of ['apps', 'coordination.k8s.io', 'agents.x-k8s.io', 'apiextensions.k8s.io'])
      ok(names.includes(name), name)
    ok(!names.includes(''))
  }),
  check(8, 'a client that asks for aggregated discovery v2 gets exactly that', async (t) => {
    for (const path of ['/api', '/apis']) {
      const accept = `${aggregated('v2')},${aggregated('v2beta1')},application/json`
      const answer = await t.get(path, { accept })
      const body = answer.is(200)
      equal(answer.headers['content-type'], 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList')
      deepEqual([body.kind, body.apiVersion], ['APIGroupDiscoveryList', 'apidiscovery.k8s.io/v2'])
      for (const group of body.items as unknown as Group[]) equal(group.versions[0]?.freshness, 'Current')
    }
  }),
  check(
    9,
    'a client that only knows v2beta1 gets v2beta1',
    async (t) => {
      const answer = await t.get('/apis', { accept: `${aggregated('v2beta1')},application/json` })
      const body = answer.is(200)
      if (!t.isEmbedded) return equal(body.kind, 'APIGroupList')
      equal(body.kind, 'APIGroupDiscoveryList')
      equal(body.apiVersion, 'apidiscovery.k8s.io/v2beta1')
      match(answer.headers['content-type'] ?? '', /v=v2beta1/)
    },
    {
      differs:
        'recent servers have dropped v2beta1 and answer with the legacy document; kubectl up to 1.29 asks for it',
    },
  ),
  check(10, 'an unknown profile in the Accept header is tolerated', async (t) => {
    const body = (
      await t.get('/apis', { accept: `${aggregated('v2', ';profile=nopeer')},${aggregated('v2')},application/json` })
    ).is(200)
    equal(body.kind, 'APIGroupDiscoveryList')
  }),
  check(11, 'legacy lists agree with aggregated discovery in resources, verbs and scopes', async (t) => {
    for (const group of await groups(t)) {
      for (const { version, resources } of group.versions) {
        const { name = '' } = group.metadata
        const list = (await t.get(name === '' ? `/api/${version}` : `/apis/${name}/${version}`)).is(200)
        const rows = (list.resources as { name: string; namespaced: boolean; verbs: string[]; kind: string }[])
          .filter((row) => !row.name.includes('/'))
          .map((row) => [row.name, row.kind, row.namespaced ? 'Namespaced' : 'Cluster', [...row.verbs].sort()])
        const wanted = resources.map((row) => [row.resource, row.responseKind.kind, row.scope, [...row.verbs].sort()])
        const order = (a: unknown[], b: unknown[]): number => (String(a[0]) < String(b[0]) ? -1 : 1)
        deepEqual(rows.sort(order), wanted.sort(order), `${name}/${version}`)
        if (name === '') continue
        const one = (await t.get(`/apis/${name}`)).is(200)
        ok(
          (one.versions as { version: string }[]).some((entry) => entry.version === version),
          `${name} lists ${version}`,
        )
      }
    }
  }),
  check(12, 'sub-resources are listed with the kinds they answer', async (t) => {
    const all = await groups(t)
    const find = (group: string, resource: string, subresource: string): unknown => {
      const [version] = all.find((entry) => (entry.metadata.name ?? '') === group)?.versions ?? []
      const rows = version?.resources.find((row) => row.resource === resource)?.subresources
      const found = rows?.find((row) => row.subresource === subresource)?.responseKind
      // Empty group and version mean the parent's.
      const isOwn = found !== undefined && found.group === '' && found.version === ''
      return isOwn ? { ...found, group, version: version?.version } : found
    }
    const kind = (group: string, version: string, name: string): object => ({ group, version, kind: name })
    deepEqual(find('', 'pods', 'log'), kind('', 'v1', 'Pod'))
    deepEqual(find('', 'pods', 'exec'), kind('', 'v1', 'PodExecOptions'))
    deepEqual(find('', 'pods', 'attach'), kind('', 'v1', 'PodAttachOptions'))
    deepEqual(find('', 'pods', 'portforward'), kind('', 'v1', 'PodPortForwardOptions'))
    deepEqual(find('', 'pods', 'status'), kind('', 'v1', 'Pod'))
    deepEqual(find('', 'pods', 'eviction'), kind('policy', 'v1', 'Eviction'))
    deepEqual(find('', 'serviceaccounts', 'token'), kind('authentication.k8s.io', 'v1', 'TokenRequest'))
    deepEqual(find('extensions.agents.x-k8s.io', 'sandboxwarmpools', 'scale'), kind('autoscaling', 'v1', 'Scale'))
  }),
  check(
    13,
    'an unknown group or resource is 404 with a Status',
    async (t) => {
      for (const path of [
        '/apis/nothing.example.com/v1/things',
        '/api/v1/things',
        '/api/v1/namespaces/default/things',
        '/nothing',
      ]) {
        const answer = await t.get(path)
        equal(answer.status, 404, path)
        if (!answer.headers['content-type']?.startsWith('application/json')) continue // a real server answers in text outside /api
        equal(answer.body.reason, 'NotFound', path)
      }
    },
    { differs: 'for groups it does not know the real one answers in plain text, the embedded one with a Status' },
  ),
  check(
    14,
    'kubectl 1.29 to 1.33 get pods, each with an empty cache',
    async (t) => {
      await t.create(await t.core('pods'), pod('one'))
      for (const version of kubectlVersions) {
        const out = await t.ok(version, ['get', 'pods'])
        match(out, /^NAME +READY +STATUS +RESTARTS +AGE\none +0\/1 +Pending/, version)
      }
    },
    { heavy: true },
  ),
  check(
    15,
    'kubectl api-resources shows short names; get all lists pods and services',
    async (t) => {
      const resources = await t.ok(anyKubectl, ['api-resources', '-o', 'wide'])
      match(resources, /^pods +po +v1 +true +Pod .*all/m)
      match(resources, /^sandboxwarmpools +swp\S* +extensions.agents.x-k8s.io\/v1beta1 +true +SandboxWarmPool/m)
      await t.create(await t.core('pods'), pod('one'))
      await t.create(await t.core('services'), { metadata: { name: 'web' }, spec: { ports: [{ port: 80 }] } })
      const all = await t.ok(anyKubectl, ['get', 'all'])
      match(all, /pod\/one/)
      match(all, /service\/web/)
    },
    { heavy: true },
  ),
]

import { SandboxClaims, Sandboxes, SandboxTemplates, SandboxWarmPools } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { corePermissions, extensionPermissions, type Permission } from '../../scripts/generate/rbac.js'
import { claim, createPool, fullPool, readyClaim, readySandbox, sandbox, startTestCluster } from './cluster.js'
import { ref } from './objects.js'

const allows = (permissions: readonly Permission[], group: string, resource: string, verb: string): boolean =>
  permissions.some((entry) => entry.group === group && entry.resource === resource && entry.verbs.includes(verb))

describe('rights of the manager', () => {
  it('cover every request of a working day', async () => {
    await using cluster = await startTestCluster()
    const used = new Set<string>()
    cluster.fault = ({ method, path, query }) => {
      const match =
        /^\/(?:api|apis\/([^/]+))\/[^/]+(?:\/namespaces\/[^/]+)?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(path)
      if (!match) return undefined
      const [, group = '', resource = '', name, subresource] = match
      const read = query.get('watch') ? 'watch' : name ? 'get' : 'list'
      const verbs: Record<string, string> = {
        GET: read,
        POST: 'create',
        PUT: 'update',
        PATCH: 'patch',
        DELETE: 'delete',
      }
      used.add(`${group} ${resource}${subresource ? `/${subresource}` : ''} ${verbs[method]}`)
      return undefined
    }
    await cluster.startManager()
    await createPool(cluster.client, 1)
    await fullPool(cluster.client, 1)
    await cluster.client.create(SandboxClaims, claim('warm'))
    await readyClaim(cluster.client, 'warm')
    const volume = {
      metadata: { name: 'data' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    }
    await cluster.client.create(Sandboxes, sandbox('box', { service: true, volumeClaimTemplates: [volume] }))
    await readySandbox(cluster.client, 'box')
    await cluster.client.patch(Sandboxes, ref('box'), {
      type: 'merge',
      body: { spec: { shutdownTime: '2020-01-01T00:00:00Z', shutdownPolicy: 'Delete' } },
    })
    await expect.poll(() => cluster.client.find(Sandboxes, ref('box'))).toBeUndefined()
    await cluster.client.patch(SandboxTemplates, ref('tmpl'), { type: 'merge', body: { spec: { networkPolicy: {} } } })
    await cluster.client.patch(SandboxTemplates, ref('tmpl'), {
      type: 'merge',
      body: { spec: { networkPolicyManagement: 'Unmanaged' } },
    })
    await cluster.client.scale(SandboxWarmPools, ref('pool'), 0)
    await fullPool(cluster.client, 0)
    await cluster.client.patch(SandboxClaims, ref('warm'), {
      type: 'merge',
      body: { spec: { lifecycle: { shutdownTime: '2020-01-01T00:00:00Z', shutdownPolicy: 'Delete' } } },
    })
    await expect.poll(() => cluster.client.find(SandboxClaims, ref('warm'))).toBeUndefined()
    await cluster.stopManager()

    const permissions = [...corePermissions, ...extensionPermissions]
    const missing = [...used].filter((request) => {
      const [group = '', resource = '', verb = ''] = request.split(' ')
      return !allows(permissions, group, resource, verb)
    })
    expect(missing).toEqual([])
    expect(used.size).toBeGreaterThan(25)
  })
})

import type { ClientSettings, Ecosystem, Registry } from '../ecosystem.js'

/**
 * Go modules through the GOPROXY protocol, whose files are the same behind every proxy, and the checksum database behind
 * `/sumdb/`, so that checksums are looked up through the mirror too.
 */
export const go: Ecosystem = {
  name: 'go',
  resource(request, upstream) {
    const { path } = request
    if (/^sumdb\/[\w.-]+\/supported$/.test(path)) return { body: '', contentType: 'text/plain; charset=utf-8' }
    const isChecksum = /^sumdb\/[\w.-]+\/(latest|lookup\/[^?#]+|tile\/[\w./-]+)$/.test(path)
    const isModule = /^[^?#\s]+\/@(latest|v\/(list|[^/]+\.(info|mod|zip)))$/.test(path)
    if ((!isChecksum && !isModule) || path.split('/').includes('..')) return undefined
    return {
      sources: upstream.registries.map(
        (registry): Registry => ({ ...registry, url: new URL(registry.url.href + path) }),
      ),
      kind: changes(path) ? 'index' : 'artifact',
    }
  },
  clientSettings: (baseUrl): ClientSettings => ({
    env: { GOPROXY: `${baseUrl}/go`, GOFLAGS: '-modcacherw' },
    files: {},
  }),
}

/** A query such as `@v/master.info` names whatever the branch is now; only versions stay what they are. */
function changes(path: string): boolean {
  if (path.startsWith('sumdb/')) return path.endsWith('/latest')
  const file = path.split('/@')[1] ?? ''
  return file === 'latest' || file === 'v/list' || !/^v\/v\d+\.\d+\.\d+[^/]*\.(info|mod|zip)$/.test(file)
}

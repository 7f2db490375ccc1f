import type { ClientSettings, Ecosystem, Registry } from '../ecosystem.js'

/** Cargo's sparse registry protocol. Where crates lie is told by the index' `config.json`, which the mirror answers. */
export const crates: Ecosystem = {
  name: 'crates',
  resource(request, upstream, links) {
    const { path } = request
    if (path === 'index/config.json') {
      const dl = `${links.base}/crates/crate/{crate}/{version}/{sha256-checksum}`
      return { body: JSON.stringify({ dl }), contentType: 'application/json' }
    }
    const crate = /^crate\/([\w-]+)\/([\w.+-]+)\/([0-9a-f]{64})$/.exec(path)
    if (crate) {
      const [, name = '', version = '', checksum = ''] = crate
      return {
        sources: upstream.registries.flatMap(({ download, ...registry }: Registry) =>
          download ? [{ ...registry, url: new URL(filled(download, name, version, checksum)) }] : [],
        ),
        kind: 'artifact',
      }
    }
    if (!/^index\/(1|2|3\/\w|[\w-]{2}\/[\w-]{1,2})\/[\w-]+$/.test(path)) return undefined
    return {
      sources: upstream.registries.map((registry) => ({
        ...registry,
        url: new URL(registry.url.href + path.slice('index/'.length)),
      })),
      kind: 'index',
    }
  },
  clientSettings: (baseUrl): ClientSettings => ({
    // Cargo reads a source replacement only from a configuration file, not from the environment.
    env: {},
    files: {
      '.cargo/config.toml': [
        '[source.crates-io]',
        'replace-with = "corral"',
        '',
        '[source.corral]',
        `registry = "sparse+${baseUrl}/crates/index/"`,
        '',
      ].join('\n'),
    },
  }),
}

/** The markers of an index' `dl`; without any, the path of crates.io's API is meant. */
function filled(template: string, name: string, version: string, checksum: string): string {
  const markers: Record<string, string> = {
    '{crate}': name,
    '{version}': version,
    '{prefix}': prefix(name),
    '{lowerprefix}': prefix(name.toLowerCase()),
    '{sha256-checksum}': checksum,
  }
  const known = Object.keys(markers).filter((marker) => template.includes(marker))
  if (known.length === 0) return `${template.replace(/\/$/, '')}/${name}/${version}/download`
  return known.reduce((url, marker) => url.replaceAll(marker, markers[marker] ?? ''), template)
}

function prefix(name: string): string {
  if (name.length <= 2) return String(name.length)
  return name.length === 3 ? `3/${name[0]}` : `${name.slice(0, 2)}/${name.slice(2, 4)}`
}

import type { ClientSettings, Ecosystem, Registry } from '../ecosystem.js'

/** Maven's repository layout, `group/as/directories/artifact/version/file`, which Gradle and sbt read too. */
export const maven: Ecosystem = {
  name: 'maven',
  resource(request, upstream) {
    const { path } = request
    if (!/^[\w.+~-]+(\/[\w.+~@-]+)+$/.test(path)) return undefined
    return {
      sources: upstream.registries.map(
        (registry): Registry => ({ ...registry, url: new URL(registry.url.href + path) }),
      ),
      kind: changes(path) ? 'index' : 'artifact',
    }
  },
  clientSettings: (baseUrl): ClientSettings => ({
    // Maven reads a mirror only from settings.xml, not from the environment.
    env: {},
    files: {
      '.m2/settings.xml': [
        '<settings>',
        '  <mirrors>',
        `    <mirror><id>corral</id><mirrorOf>*</mirrorOf><url>${baseUrl}/maven</url></mirror>`,
        '  </mirrors>',
        '</settings>',
        '',
      ].join('\n'),
    },
  }),
}

/** A released file stays what it is, and so do its checksums. Lists of versions and snapshots are published again. */
function changes(path: string): boolean {
  return /(^|\/)maven-metadata[^/]*\.xml(\.\w+)*$/.test(path) || /-SNAPSHOT\//.test(path)
}

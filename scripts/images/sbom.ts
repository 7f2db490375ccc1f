/** One thing inside an image, as a bill of materials names it. */
export interface Component {
  readonly name: string
  readonly version: string
  /** A package URL. */
  readonly purl: string
  readonly license?: string | undefined
}

/** The Debian packages of a dpkg status file that are installed. Pure. */
export function debianComponents(status: string): Component[] {
  return status.split(/\n\n+/).flatMap((entry): Component[] => {
    const field = (name: string): string | undefined => new RegExp(`^${name}: (.*)$`, 'm').exec(entry)?.[1]
    const [name, version, architecture] = [field('Package'), field('Version'), field('Architecture')]
    if (!name || !version || !field('Status')?.endsWith(' installed')) return []
    const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture ?? 'all'}`
    return [{ name, version, purl }]
  })
}

interface LockEntry {
  version?: string
  license?: string
  dev?: boolean
  devOptional?: boolean
  link?: boolean
}

/** The npm packages that ship: those of the lock file that are not for development alone. Pure. */
export function npmComponents(lock: { packages: Readonly<Record<string, LockEntry>> }): Component[] {
  const found = Object.entries(lock.packages).flatMap(([path, entry]): Component[] => {
    const name = path.split('node_modules/').at(-1)
    if (!path.includes('node_modules/') || !name || entry.dev || entry.devOptional || entry.link || !entry.version)
      return []
    const purl = `pkg:npm/${name.replace('@', '%40')}@${entry.version}`
    return [{ name, version: entry.version, purl, license: entry.license }]
  })
  return [...new Map(found.map((component) => [component.purl, component])).values()]
}

/** An SPDX 2.3 document of an image. The same content gives the same text. Pure. */
export function spdxDocument(image: {
  name: string
  digest: string
  epochSeconds: number
  components: readonly Component[]
}): object {
  const sorted = [...image.components].sort((a, b) => (a.purl < b.purl ? -1 : 1))
  const packages = sorted.map(({ name, version, purl, license }, index) => ({
    SPDXID: `SPDXRef-Package-${index + 1}`,
    name,
    versionInfo: version,
    downloadLocation: 'NOASSERTION',
    filesAnalyzed: false,
    licenseConcluded: 'NOASSERTION',
    licenseDeclared: license && /^[A-Za-z0-9.+-]+$/.test(license) ? license : 'NOASSERTION',
    copyrightText: 'NOASSERTION',
    externalRefs: [{ referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purl }],
  }))
  const root = {
    SPDXID: 'SPDXRef-Image',
    name: image.name,
    versionInfo: image.digest,
    downloadLocation: 'NOASSERTION',
    filesAnalyzed: false,
    primaryPackagePurpose: 'CONTAINER',
    licenseConcluded: 'NOASSERTION',
    licenseDeclared: 'Apache-2.0',
    copyrightText: 'NOASSERTION',
  }
  const relation = (from: string, relationshipType: string, to: string): object => ({
    spdxElementId: from,
    relationshipType,
    relatedSpdxElement: to,
  })
  return {
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name: image.name,
    documentNamespace: `https://corral.dev/spdx/${image.name}/${image.digest.replace(':', '-')}`,
    creationInfo: {
      created: new Date(image.epochSeconds * 1000).toISOString().replace(/\.\d+Z$/, 'Z'),
      creators: ['Tool: corral-images'],
    },
    packages: [root, ...packages],
    relationships: [
      relation('SPDXRef-DOCUMENT', 'DESCRIBES', root.SPDXID),
      ...packages.map(({ SPDXID }) => relation(root.SPDXID, 'CONTAINS', SPDXID)),
    ],
  }
}

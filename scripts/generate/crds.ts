/**
 * Writes the CRD manifests of both sets, as YAML for people and kubectl and as JSON for programs:
 *   npx tsx scripts/generate/crds.ts
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { dump } from 'js-yaml'
import { type CrdSet, crdManifests } from '../../packages/resources/src/crd/manifests.js'

const OUTPUT = join(import.meta.dirname, '../../config/crds')
const SETS: CrdSet[] = ['cluster', 'embedded']

/** Path below `config/crds` → content, for every manifest file. */
export function crdFiles(): Map<string, string> {
  const files = new Map<string, string>()
  for (const set of SETS) {
    for (const crd of crdManifests(set)) {
      const base = `${set}/${crd.spec.group}_${crd.spec.names.plural}`
      const sorted = sortKeys(crd)
      files.set(`${base}.yaml`, dump(sorted, { lineWidth: -1, noRefs: true }))
      // Beside the YAML, `kubectl apply -f <directory>` would apply every CRD twice.
      files.set(`json/${base}.json`, `${JSON.stringify(sorted)}\n`)
    }
  }
  return files
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([key, member]) => [key, sortKeys(member)]))
}

if (import.meta.filename === process.argv[1]) {
  for (const [path, content] of crdFiles()) {
    mkdirSync(dirname(join(OUTPUT, path)), { recursive: true })
    writeFileSync(join(OUTPUT, path), content)
  }
}

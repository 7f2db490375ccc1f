import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { emitCoreTypes } from '../../../scripts/generate/core-types.js'
import { modelDifferences } from '../../../scripts/generate/differences.js'
import { emitFieldTable } from '../../../scripts/generate/field-table.js'
import { JUDGE_RELEASE, RELEASE, reachableFrom } from '../../../scripts/generate/kubernetes.js'
import { type Model, type ModelField, readKubernetesModel } from '../../../scripts/generate/kubernetes-model.js'
import { ROOTS } from '../../../scripts/generate/roots.js'

const CACHE = process.env.GOMODCACHE ?? join(process.env.GOPATH ?? join(homedir(), 'go'), 'pkg/mod')
const directories = (release: string) => ({
  api: join(CACHE, `k8s.io/api@${release}`),
  apimachinery: join(CACHE, `k8s.io/apimachinery@${release}`),
  apiextensions: join(CACHE, `k8s.io/apiextensions-apiserver@${release}`),
})
const isCached = (release: string): boolean => Object.values(directories(release)).every((path) => existsSync(path))
const SWAGGER = join(CACHE, 'k8s.io/kubernetes@v1.34.4/api/openapi-spec/swagger.json')

describe.skipIf(!isCached(RELEASE))('generated files (needs the Kubernetes Go modules)', () => {
  const model = isCached(RELEASE) ? readKubernetesModel(directories(RELEASE)) : new Map()
  const committed = (file: string): string => readFileSync(join(import.meta.dirname, 'generated', file), 'utf8')

  it('are committed as generated', () => {
    const reachable = reachableFrom(ROOTS, model)
    expect(committed('core-types.ts')).toBe(emitCoreTypes(model, reachable, RELEASE))
    expect(committed('field-table-data.ts')).toBe(emitFieldTable(model, reachable, RELEASE))
  })

  it.skipIf(!isCached(JUDGE_RELEASE))('list what the release we generate from has changed', () => {
    const differences = modelDifferences(
      readKubernetesModel(directories(JUDGE_RELEASE)),
      model,
      reachableFrom(ROOTS, model),
    )
    expect(committed('differences-from-1.34.md').match(/^- .*$/gm)).toEqual(differences.map((line) => `- ${line}`))
  })
})

interface Definition {
  properties?: Record<string, Record<string, unknown>>
  required?: string[]
}

describe.skipIf(!existsSync(SWAGGER) || !isCached(JUDGE_RELEASE))(
  'our reading of Go source (needs Kubernetes 1.34.4)',
  () => {
    it('agrees with the OpenAPI document of the same release on every field', () => {
      const model = readKubernetesModel(directories(JUDGE_RELEASE))
      const { definitions } = JSON.parse(readFileSync(SWAGGER, 'utf8')) as { definitions: Record<string, Definition> }
      const disagreements: string[] = []
      let compared = 0
      for (const name of reachableFrom(ROOTS, model)) {
        const { properties, required = [] } = definitions[name] ?? {}
        if (!properties) continue
        const fields = new Map(allFields(name, model).map((field) => [field.name, field]))
        for (const key of new Set([...Object.keys(properties), ...fields.keys()])) {
          compared += 1
          const theirs = properties[key] && facts(properties[key], required.includes(key))
          const ours = fields.get(key)
          if (JSON.stringify(ours && ourFacts(ours)) !== JSON.stringify(theirs)) disagreements.push(`${name}.${key}`)
        }
      }
      expect(disagreements).toEqual([])
      expect(compared).toBeGreaterThan(1200)
    })
  },
)

function allFields(name: string, model: Model): ModelField[] {
  const struct = model.get(name)
  if (!struct) return []
  return [...struct.inlined.flatMap(({ type }) => allFields(type, model)), ...struct.fields]
}

function facts(property: Record<string, unknown>, required: boolean): unknown {
  return [
    required,
    property['x-kubernetes-list-type'],
    property['x-kubernetes-list-map-keys'],
    property['x-kubernetes-map-type'],
    property['x-kubernetes-patch-strategy'],
    property['x-kubernetes-patch-merge-key'],
  ]
}

function ourFacts(field: ModelField): unknown {
  return [field.required, field.listType, field.listMapKeys, field.mapType, field.patchStrategy, field.patchMergeKey]
}

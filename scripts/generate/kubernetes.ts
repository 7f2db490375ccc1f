/**
 * Regenerates the core types and the field table from the Kubernetes Go modules in the module cache:
 *   npx tsx scripts/generate/kubernetes.ts
 * Needs Go and the modules (`go mod download k8s.io/api@v0.37.0 k8s.io/apimachinery@v0.37.0 ...`); nothing else does.
 */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { emitCoreTypes } from './core-types.js'
import { type Model, type ModelType, readKubernetesModel } from './kubernetes-model.js'
import { ROOTS } from './roots.js'

export const RELEASE = 'v0.37.0'
const OUTPUT = join(import.meta.dirname, '../../packages/resources/src/generated')

/** Directories of a release's modules in the Go module cache. */
export function moduleDirectories(release: string): { api: string; apimachinery: string; apiextensions: string } {
  const cache = execFileSync('go', ['env', 'GOMODCACHE'], { encoding: 'utf8' }).trim()
  const at = (module: string): string => join(cache, 'k8s.io', `${module}@${release}`)
  return { api: at('api'), apimachinery: at('apimachinery'), apiextensions: at('apiextensions-apiserver') }
}

/** Names of all types that the roots lead to, roots included, sorted. */
export function reachableFrom(roots: string[], model: Model): string[] {
  const seen = new Set<string>()
  const visitType = (type: ModelType): void => {
    if (type.kind === 'ref') visit(type.ref)
    else if (type.kind === 'array') visitType(type.items)
    else if (type.kind === 'map') visitType(type.values)
  }
  const visit = (name: string): void => {
    if (seen.has(name)) return
    const struct = model.get(name)
    if (!struct) throw new Error(`no type ${name}`)
    seen.add(name)
    for (const inlined of struct.inlined) visit(inlined.type)
    for (const field of struct.fields) visitType(field.type)
  }
  for (const root of roots) visit(root)
  return [...seen].sort()
}

if (import.meta.filename === process.argv[1]) {
  const model = readKubernetesModel(moduleDirectories(RELEASE))
  const reachable = reachableFrom(ROOTS, model)
  writeFileSync(join(OUTPUT, 'core-types.ts'), emitCoreTypes(model, reachable, RELEASE))
  process.stdout.write(`${reachable.length} types\n`)
}

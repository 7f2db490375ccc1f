import type { Model, ModelField, ModelStruct } from './kubernetes-model.js'

/** Every difference between two models over the named types, one sentence each, sorted. */
export function modelDifferences(before: Model, after: Model, names: string[]): string[] {
  const lines: string[] = []
  for (const name of names) {
    const old = before.get(name)
    const now = after.get(name)
    if (!now) continue
    if (!old) {
      lines.push(`${name}: new type`)
      continue
    }
    lines.push(...structDifferences(old, now))
  }
  return lines.sort()
}

function structDifferences(old: ModelStruct, now: ModelStruct): string[] {
  const lines: string[] = []
  const oldFields = new Map(old.fields.map((field) => [field.name, field]))
  for (const field of now.fields) {
    const previous = oldFields.get(field.name)
    oldFields.delete(field.name)
    if (!previous) lines.push(`${now.name}.${field.name}: new`)
    else lines.push(...fieldDifferences(`${now.name}.${field.name}`, previous, field))
  }
  for (const name of oldFields.keys()) lines.push(`${now.name}.${name}: removed`)
  if (old.atomic !== now.atomic) lines.push(`${now.name}: atomic ${old.atomic} → ${now.atomic}`)
  return lines
}

function fieldDifferences(path: string, old: ModelField, now: ModelField): string[] {
  const keys = new Set([...Object.keys(old), ...Object.keys(now)]) as Set<keyof ModelField>
  return [...keys]
    .filter((key) => JSON.stringify(old[key]) !== JSON.stringify(now[key]))
    .map((key) => `${path}: ${key} ${JSON.stringify(old[key]) ?? 'unset'} → ${JSON.stringify(now[key]) ?? 'unset'}`)
}

import { type FieldType, fieldTable, type PodSpec } from '@corral/resources'
import type { FieldClass } from './field-class.js'
import { fieldClasses } from './field-classes.js'

export interface RefusedField {
  /** `spec.containers[0].securityContext.privileged`. */
  path: string
  reason: string
}

const podSpecType = 'io.k8s.api.core.v1.PodSpec'

/** Every field that is set in the pod and that this node cannot do. A field without a class counts as refused. */
export function refusedFields(spec: PodSpec): RefusedField[] {
  const found: RefusedField[] = []
  walkObject(spec, podSpecType, 'spec', found)
  return found
}

/** The class of a field, by the full name of its type. */
export function fieldClass(typeName: string, field: string): FieldClass | undefined {
  return fieldClasses[typeName.slice(typeName.lastIndexOf('.') + 1)]?.[field]
}

function walkObject(value: object, typeName: string, path: string, found: RefusedField[]): void {
  const type = fieldTable.find(typeName)
  for (const [name, member] of Object.entries(value)) {
    const memberPath = `${path}.${name}`
    const own = fieldClass(typeName, name)
    if (own === undefined) {
      if (member !== undefined && member !== null)
        found.push({ path: memberPath, reason: 'this node does not know it' })
    } else if (own.class === 'refused') {
      if (!own.allows(member)) found.push({ path: memberPath, reason: own.reason })
    } else if (own.class === 'honoured') {
      const field = type?.field(name)
      if (field) walkValue(member, field.type, memberPath, found)
    }
  }
}

function walkValue(value: unknown, type: FieldType, path: string, found: RefusedField[]): void {
  if (typeof value !== 'object' || value === null) return
  switch (type.kind) {
    case 'scalar':
      return
    case 'ref':
      walkObject(value, type.ref, path, found)
      return
    case 'array':
      for (const [index, item] of Object.entries(value)) walkValue(item, type.items, `${path}[${index}]`, found)
      return
    case 'map':
      for (const [key, item] of Object.entries(value)) walkValue(item, type.values, `${path}[${key}]`, found)
  }
}

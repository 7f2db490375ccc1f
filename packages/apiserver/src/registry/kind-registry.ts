import type { KindDefinition } from './kind-definition.js'

/** Kinds by group-version and plural. Changes as CustomResourceDefinitions come and go; `generation` counts changes. */
export class KindRegistry {
  private readonly byGroupVersion = new Map<string, Map<string, KindDefinition>>()
  private byCollection = new Map<string, KindDefinition[]>()
  private readonly removals = new Map<KindDefinition, Set<() => void>>()
  private changes = 0
  private indexedAt = -1

  get generation(): number {
    return this.changes
  }

  find(apiVersion: string, plural: string): KindDefinition | undefined {
    return this.byGroupVersion.get(apiVersion)?.get(plural)
  }

  /** The definition of a kind by name, as in an object's `apiVersion` and `kind`. */
  findKind(apiVersion: string, kind: string): KindDefinition | undefined {
    for (const definition of this.byGroupVersion.get(apiVersion)?.values() ?? []) {
      if (definition.kind === kind) return definition
    }
    return undefined
  }

  add(definition: KindDefinition): void {
    let kinds = this.byGroupVersion.get(definition.apiVersion)
    if (!kinds) {
      kinds = new Map()
      this.byGroupVersion.set(definition.apiVersion, kinds)
    }
    kinds.set(definition.plural, definition)
    this.changes++
  }

  remove(definition: KindDefinition): void {
    const kinds = this.byGroupVersion.get(definition.apiVersion)
    if (kinds?.get(definition.plural) !== definition) return
    kinds.delete(definition.plural)
    if (kinds.size === 0) this.byGroupVersion.delete(definition.apiVersion)
    this.changes++
    const listeners = this.removals.get(definition)
    this.removals.delete(definition)
    for (const listener of listeners ?? []) listener()
  }

  /** Calls once when the definition is removed or replaced, unless the returned function was called before. */
  onRemoved(definition: KindDefinition, listener: () => void): () => void {
    const listeners = this.removals.get(definition) ?? new Set()
    this.removals.set(definition, listeners)
    listeners.add(listener)
    return () => listeners.delete(listener)
  }

  /** Kinds of one group-version; empty when it is not served. */
  inGroupVersion(apiVersion: string): KindDefinition[] {
    return [...(this.byGroupVersion.get(apiVersion)?.values() ?? [])]
  }

  get all(): KindDefinition[] {
    return [...this.byGroupVersion.values()].flatMap((kinds) => [...kinds.values()])
  }

  /** One definition per collection that stores objects, for those who walk over everything. */
  get stored(): KindDefinition[] {
    const byCollection = new Map<string, KindDefinition>()
    for (const kind of this.all) {
      if (!kind.review && !byCollection.has(kind.collection)) byCollection.set(kind.collection, kind)
    }
    return [...byCollection.values()]
  }

  /** A definition of the collection, the one in `apiVersion` where it is served. */
  ofCollection(collection: string, apiVersion?: string): KindDefinition | undefined {
    if (this.indexedAt !== this.changes) {
      this.byCollection = new Map()
      for (const kind of this.all) {
        if (!kind.review)
          this.byCollection.set(kind.collection, [...(this.byCollection.get(kind.collection) ?? []), kind])
      }
      this.indexedAt = this.changes
    }
    const kinds = this.byCollection.get(collection)
    return kinds?.find((kind) => kind.apiVersion === apiVersion) ?? kinds?.[0]
  }

  /** Served groups with their versions, the preferred one first; the core group is `''`. */
  get groups(): Map<string, string[]> {
    const groups = new Map<string, string[]>()
    for (const apiVersion of this.byGroupVersion.keys()) {
      const slash = apiVersion.indexOf('/')
      const group = slash < 0 ? '' : apiVersion.slice(0, slash)
      groups.set(group, [...(groups.get(group) ?? []), apiVersion.slice(slash + 1)])
    }
    for (const versions of groups.values()) versions.sort(compareVersions)
    return groups
  }
}

/** Kubernetes' preference: GA before beta before alpha, then the higher number; other names last, by alphabet. */
export function compareVersions(a: string, b: string): number {
  const left = parseVersion(a)
  const right = parseVersion(b)
  if (!left || !right) return left ? -1 : right ? 1 : a.localeCompare(b)
  for (let index = 0; index < 3; index++) {
    const difference = right[index]! - left[index]!
    if (difference !== 0) return difference
  }
  return 0
}

function parseVersion(version: string): [stability: number, major: number, minor: number] | undefined {
  const match = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version)
  if (!match) return undefined
  const stability = match[2] === undefined ? 2 : match[2] === 'beta' ? 1 : 0
  return [stability, Number(match[1]), Number(match[3] ?? 0)]
}

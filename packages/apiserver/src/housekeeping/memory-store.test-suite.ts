import type { KubeObject } from '@corral/resources'
import type { HousekeepingStore, ObjectEvent, ObjectRef } from './index.js'

/** A store with just the rules the housekeepers rely on: finalizers hold an object, policies add theirs. */
export class MemoryCollectStore implements HousekeepingStore {
  readonly #objects = new Map<string, { resource: string; object: KubeObject }>()
  readonly #listeners = new Set<(event: ObjectEvent) => void>()
  #sequence = 0
  readonly writes: string[] = []

  constructor(private readonly kinds: Readonly<Record<string, boolean>>) {}

  resources(): { resource: string; namespaced: boolean }[] {
    return Object.entries(this.kinds).map(([resource, namespaced]) => ({ resource, namespaced }))
  }

  list(resource: string): KubeObject[] {
    return [...this.#objects.values()].filter((each) => each.resource === resource).map((each) => each.object)
  }

  names(resource: string): string[] {
    return this.list(resource).map((object) => object.metadata?.name ?? '')
  }

  find(resource: string, name: string): KubeObject | undefined {
    return this.list(resource).find((object) => object.metadata?.name === name)
  }

  watch(listener: (event: ObjectEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Adds an object; its uid is its name unless it says otherwise. */
  add(resource: string, object: KubeObject): void {
    const name = object.metadata?.name ?? ''
    this.#put('ADDED', resource, { ...object, metadata: { uid: name, ...object.metadata } })
  }

  change(resource: string, name: string, change: (object: KubeObject) => KubeObject): void {
    const object = this.find(resource, name)
    if (object) this.#put('MODIFIED', resource, change(object))
  }

  async create(resource: string, object: KubeObject): Promise<void> {
    await Promise.resolve()
    this.writes.push(`create ${resource}/${object.metadata?.name}`)
    this.#put('ADDED', resource, { ...object, metadata: { ...object.metadata, uid: `uid-${++this.#sequence}` } })
  }

  async delete(ref: ObjectRef, options: { propagationPolicy?: string } = {}): Promise<void> {
    await Promise.resolve()
    const object = this.#get(ref)
    if (!object) return
    this.writes.push(`delete ${ref.resource}/${ref.name}`)
    const finalizers = [...(object.metadata?.finalizers ?? [])]
    if (options.propagationPolicy === 'Foreground') finalizers.push('foregroundDeletion')
    if (options.propagationPolicy === 'Orphan') finalizers.push('orphan')
    const isNamespace = ref.resource === 'namespaces'
    if (finalizers.length === 0 && !isNamespace) this.#remove(ref, object)
    else {
      const metadata = { ...object.metadata, finalizers, deletionTimestamp: '2026-01-01T00:00:00Z' }
      this.#put('MODIFIED', ref.resource, { ...object, metadata })
    }
  }

  async update(ref: ObjectRef, change: (object: KubeObject) => KubeObject | undefined): Promise<void> {
    await Promise.resolve()
    const object = this.#get(ref)
    const next = object && change(object)
    if (!next) return
    this.writes.push(`update ${ref.resource}/${ref.name}`)
    const specFinalizers = (next as { spec?: { finalizers?: string[] } }).spec?.finalizers ?? []
    const isHeld = (next.metadata?.finalizers ?? []).length > 0 || specFinalizers.length > 0
    if (next.metadata?.deletionTimestamp && !isHeld) this.#remove(ref, next)
    else this.#put('MODIFIED', ref.resource, next)
  }

  #get(ref: ObjectRef): KubeObject | undefined {
    return this.list(ref.resource).find((object) => object.metadata?.uid === ref.uid)
  }

  #put(type: 'ADDED' | 'MODIFIED', resource: string, object: KubeObject): void {
    this.#objects.set(`${resource}/${object.metadata?.uid}`, { resource, object })
    for (const listener of this.#listeners) listener({ type, resource, object })
  }

  #remove(ref: ObjectRef, object: KubeObject): void {
    this.#objects.delete(`${ref.resource}/${ref.uid}`)
    for (const listener of this.#listeners) listener({ type: 'DELETED', resource: ref.resource, object })
  }
}

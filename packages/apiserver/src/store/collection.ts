import type { KubeObject } from '@corral/resources'
import { EventRing, type StoreEvent } from './event-ring.js'

export type CollectionListener = (event: StoreEvent) => void

/** The objects of one group-resource: the committed state, what is queued behind it, its history and its watchers. */
export class Collection {
  readonly ring: EventRing
  readonly listeners: Set<CollectionListener> = new Set()
  private readonly namespaces = new Map<string, Map<string, KubeObject>>()
  private readonly sorted = new Map<string, readonly KubeObject[]>()
  /** Writes that have a version but are not durable yet; `undefined` is a queued removal. */
  private readonly queued = new Map<string, { rv: number; object: KubeObject | undefined }>()
  private count = 0

  constructor(
    readonly name: string,
    floorRv: number,
  ) {
    this.ring = new EventRing(floorRv)
  }

  /** The same objects with a history that begins after `floorRv`. */
  withFloor(floorRv: number): Collection {
    const copy = new Collection(this.name, floorRv)
    for (const [namespace, objects] of this.namespaces) {
      copy.namespaces.set(namespace, objects)
      copy.count += objects.size
    }
    return copy
  }

  get size(): number {
    return this.count
  }

  /** What readers see. */
  find(namespace: string, name: string): KubeObject | undefined {
    return this.namespaces.get(namespace)?.get(name)
  }

  /** What the next write builds on: queued writes included. */
  findHead(namespace: string, name: string): KubeObject | undefined {
    if (this.queued.size > 0) {
      const entry = this.queued.get(`${namespace}/${name}`)
      if (entry) return entry.object
    }
    return this.find(namespace, name)
  }

  /** Committed objects ordered by namespace, then name. The array is shared: do not change it. */
  list(namespace?: string): readonly KubeObject[] {
    if (namespace !== undefined) return this.sortedNamespace(namespace)
    const names = [...this.namespaces.keys()].sort()
    if (names.length === 1) return this.sortedNamespace(names[0]!)
    return names.flatMap((name) => this.sortedNamespace(name))
  }

  private sortedNamespace(namespace: string): readonly KubeObject[] {
    let list = this.sorted.get(namespace)
    if (!list) {
      const objects = this.namespaces.get(namespace)
      if (!objects) return []
      list = [...objects.keys()].sort().map((name) => objects.get(name)!)
      this.sorted.set(namespace, list)
    }
    return list
  }

  queue(namespace: string, name: string, rv: number, object: KubeObject | undefined): void {
    this.queued.set(`${namespace}/${name}`, { rv, object })
  }

  /** Forgets a queued write once it is committed or given up, unless a newer one for the same object waits behind it. */
  unqueue(namespace: string, name: string, rv: number): void {
    const key = `${namespace}/${name}`
    if (this.queued.get(key)?.rv === rv) this.queued.delete(key)
  }

  put(namespace: string, name: string, object: KubeObject): void {
    let objects = this.namespaces.get(namespace)
    if (!objects) {
      objects = new Map()
      this.namespaces.set(namespace, objects)
    }
    if (!objects.has(name)) this.count++
    objects.set(name, object)
    this.sorted.delete(namespace)
  }

  remove(namespace: string, name: string): void {
    const objects = this.namespaces.get(namespace)
    if (!objects?.delete(name)) return
    this.count--
    this.sorted.delete(namespace)
    if (objects.size === 0) this.namespaces.delete(namespace)
  }

  publish(event: StoreEvent): void {
    this.ring.push(event)
    for (const listener of this.listeners) listener(event)
  }

  /** The objects as they were at `rv`, by undoing later events; undefined when the history does not reach so far. */
  listAt(rv: number, namespace?: string): readonly KubeObject[] | undefined {
    const later = this.ring.after(rv)
    if (!later) return undefined
    if (later.length === 0) return this.list(namespace)
    const byKey = new Map(this.list(namespace).map((object) => [keyOf(object), object]))
    for (const event of later.toReversed()) {
      if (namespace !== undefined && event.namespace !== namespace) continue
      const key = `${event.namespace}/${event.name}`
      if (event.previous) byKey.set(key, event.previous)
      else byKey.delete(key)
    }
    return [...byKey.values()].sort(compareObjects)
  }
}

/** Namespace and name as one text. */
const keyOf = (object: KubeObject): string => `${object.metadata?.namespace ?? ''}/${object.metadata?.name ?? ''}`

function compareObjects(a: KubeObject, b: KubeObject): number {
  const left = a.metadata?.namespace ?? ''
  const right = b.metadata?.namespace ?? ''
  if (left !== right) return left < right ? -1 : 1
  const leftName = a.metadata?.name ?? ''
  const rightName = b.metadata?.name ?? ''
  return leftName < rightName ? -1 : leftName > rightName ? 1 : 0
}

import type { ObjectKey } from '@corral/runtime'

export interface WarmItem {
  /** `namespace/name` of the Sandbox. */
  readonly key: ObjectKey
  readonly nodeName: string
}

interface Entry extends WarmItem {
  readonly order: number
}

/** Entries in the order of their arrival, which a Map keeps for keys that are set again. */
interface Bucket {
  entries: Map<ObjectKey, Entry>
  newestOrder: number
}

interface PoolQueue {
  entries: Map<ObjectKey, Entry>
  byNode: Map<string, Bucket>
}

/**
 * Warm sandboxes waiting for a claim, one line per pool (`namespace/pool`). Taking spreads over nodes: the oldest of the
 * node with most of them, or the oldest at all while none is on a node. A taken item is gone until it is added back.
 * Those that have no address yet stand aside: there may be many, and every claim would have to look at each of them.
 */
export class WarmQueue {
  readonly #pools = new Map<ObjectKey, PoolQueue>()
  readonly #aside = new Map<ObjectKey, Map<ObjectKey, WarmItem>>()
  #order = 0

  /** Puts the item at the end. One that is in line already keeps its place and learns its node. */
  add(pool: ObjectKey, item: WarmItem): void {
    this.#comeBack(pool, item.key)
    const queue = this.#pools.get(pool) ?? { entries: new Map(), byNode: new Map() }
    this.#pools.set(pool, queue)
    const known = queue.entries.get(item.key)
    if (known?.nodeName === item.nodeName) return
    if (known) leaveNode(queue, known)
    const entry = { ...item, order: known?.order ?? this.#order++ }
    queue.entries.set(entry.key, entry)
    joinNode(queue, entry)
  }

  /** Keeps the item out of the line until it is added. */
  setAside(pool: ObjectKey, item: WarmItem): void {
    this.remove(pool, item.key)
    const aside = this.#aside.get(pool) ?? new Map<ObjectKey, WarmItem>()
    this.#aside.set(pool, aside)
    aside.set(item.key, item)
  }

  /** Those that stand aside, oldest first. */
  aside(pool: ObjectKey): Iterable<WarmItem> {
    return this.#aside.get(pool)?.values() ?? []
  }

  /** The next item, out of the line. */
  take(pool: ObjectKey): WarmItem | undefined {
    const queue = this.#pools.get(pool)
    if (!queue) return undefined
    const pick = choose(queue)
    if (!pick) return undefined
    this.#drop(pool, queue, pick)
    return { key: pick.key, nodeName: pick.nodeName }
  }

  remove(pool: ObjectKey, key: ObjectKey): void {
    this.#comeBack(pool, key)
    const queue = this.#pools.get(pool)
    const entry = queue?.entries.get(key)
    if (queue && entry) this.#drop(pool, queue, entry)
  }

  removePool(pool: ObjectKey): void {
    this.#pools.delete(pool)
    this.#aside.delete(pool)
  }

  /** All of them, in line or not. */
  size(pool: ObjectKey): number {
    return (this.#pools.get(pool)?.entries.size ?? 0) + (this.#aside.get(pool)?.size ?? 0)
  }

  #comeBack(pool: ObjectKey, key: ObjectKey): void {
    const aside = this.#aside.get(pool)
    if (aside?.delete(key) && aside.size === 0) this.#aside.delete(pool)
  }

  #drop(pool: ObjectKey, queue: PoolQueue, entry: Entry): void {
    queue.entries.delete(entry.key)
    leaveNode(queue, entry)
    if (queue.entries.size === 0) this.#pools.delete(pool)
  }
}

function choose({ entries, byNode }: PoolQueue): Entry | undefined {
  let best: Entry | undefined
  let most = 0
  for (const [nodeName, bucket] of byNode) {
    const { size } = bucket.entries
    if (nodeName === '' || size < most) continue
    const [oldest] = bucket.entries.values()
    if (oldest && (size > most || !best || oldest.order < best.order)) best = oldest
    most = size
  }
  return best ?? entries.values().next().value
}

function joinNode({ byNode }: PoolQueue, entry: Entry): void {
  const bucket = byNode.get(entry.nodeName) ?? { entries: new Map<ObjectKey, Entry>(), newestOrder: -1 }
  byNode.set(entry.nodeName, bucket)
  bucket.entries.set(entry.key, entry)
  if (entry.order < bucket.newestOrder) resort(bucket.entries)
  else bucket.newestOrder = entry.order
}

/** An entry that learned its node late has to go before the younger ones. */
function resort(entries: Map<ObjectKey, Entry>): void {
  const sorted = [...entries.values()].sort((a, b) => a.order - b.order)
  entries.clear()
  for (const entry of sorted) entries.set(entry.key, entry)
}

function leaveNode({ byNode }: PoolQueue, { key, nodeName }: Entry): void {
  const bucket = byNode.get(nodeName)
  bucket?.entries.delete(key)
  if (bucket?.entries.size === 0) byNode.delete(nodeName)
}

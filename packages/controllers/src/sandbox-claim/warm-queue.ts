import type { ObjectKey } from '@corral/runtime'

export interface WarmItem {
  /** `namespace/name` of the Sandbox. */
  readonly key: ObjectKey
  readonly nodeName: string
}

interface Entry extends WarmItem {
  readonly order: number
}

interface PoolQueue {
  entries: Map<ObjectKey, Entry>
  byNode: Map<string, Map<ObjectKey, Entry>>
}

/**
 * Warm sandboxes waiting for a claim, one line per pool (`namespace/pool`). Taking spreads over nodes: the oldest of the
 * node with most of them, or the oldest at all while none is on a node. A taken item is gone until somebody adds it back.
 */
export class WarmQueue {
  readonly #pools = new Map<ObjectKey, PoolQueue>()
  #order = 0

  /** Puts the item at the end. One that is in line already keeps its place and learns its node. */
  add(pool: ObjectKey, item: WarmItem): void {
    const queue = this.#pools.get(pool) ?? { entries: new Map(), byNode: new Map() }
    this.#pools.set(pool, queue)
    const known = queue.entries.get(item.key)
    if (known?.nodeName === item.nodeName) return
    if (known) unlink(queue, known)
    link(queue, { ...item, order: known?.order ?? this.#order++ }, known !== undefined)
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
    const queue = this.#pools.get(pool)
    const entry = queue?.entries.get(key)
    if (queue && entry) this.#drop(pool, queue, entry)
  }

  removePool(pool: ObjectKey): void {
    this.#pools.delete(pool)
  }

  size(pool: ObjectKey): number {
    return this.#pools.get(pool)?.entries.size ?? 0
  }

  #drop(pool: ObjectKey, queue: PoolQueue, entry: Entry): void {
    unlink(queue, entry)
    if (queue.entries.size === 0) this.#pools.delete(pool)
  }
}

function choose({ entries, byNode }: PoolQueue): Entry | undefined {
  let best: Entry | undefined
  let most = 0
  for (const [nodeName, bucket] of byNode) {
    if (nodeName === '' || bucket.size < most) continue
    const [oldest] = bucket.values()
    if (oldest && (bucket.size > most || !best || oldest.order < best.order)) best = oldest
    most = bucket.size
  }
  return best ?? entries.values().next().value
}

function link(queue: PoolQueue, entry: Entry, keepsPlace: boolean): void {
  queue.entries.set(entry.key, entry)
  const bucket = queue.byNode.get(entry.nodeName) ?? new Map<ObjectKey, Entry>()
  queue.byNode.set(entry.nodeName, bucket.set(entry.key, entry))
  if (!keepsPlace) return
  // Maps iterate in insertion order; an item that keeps its place has to be sorted back into it.
  resort(queue.entries)
  resort(bucket)
}

function resort(entries: Map<ObjectKey, Entry>): void {
  const sorted = [...entries.values()].sort((a, b) => a.order - b.order)
  entries.clear()
  for (const entry of sorted) entries.set(entry.key, entry)
}

function unlink({ entries, byNode }: PoolQueue, entry: Entry): void {
  entries.delete(entry.key)
  const bucket = byNode.get(entry.nodeName)
  bucket?.delete(entry.key)
  if (bucket?.size === 0) byNode.delete(entry.nodeName)
}

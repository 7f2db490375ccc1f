import type { Clock } from '@corral/ports'
import type { KubeObject } from '@corral/resources'
import { sizeInBytes } from '../objects/json-text.js'
import { freezeJson } from '../objects/plain-json.js'
import type { Storage, StorageWrite } from '../storage/storage.js'
import { Collection } from './collection.js'
import type { EventFrame, StoreEvent } from './event-ring.js'
import { GroupCommit } from './group-commit.js'

/** A write that has its version; `committed` settles once it is durable and published. */
export interface PendingWrite {
  readonly object: KubeObject
  readonly committed: Promise<void>
}

export type StoreListener = (collection: string, event: StoreEvent) => void
type QueueListener = (collection: string, object: KubeObject) => void

/**
 * The serving copy of everything. Checks and versions are decided synchronously against the head, which includes queued
 * writes; reads and watchers see a write only once storage has committed it. Writes of one turn are committed as a group.
 */
export class ObjectStore {
  private readonly collections = new Map<string, Collection>()
  private readonly listeners = new Set<StoreListener>()
  private readonly queueListeners = new Set<QueueListener>()
  private lastRv = 0
  private visibleRv = 0
  private startRv = 0
  private readonly groups: GroupCommit

  constructor(
    private readonly storage: Storage,
    private readonly clock: Clock,
  ) {
    this.groups = new GroupCommit(
      storage,
      (write) => this.publish(write),
      ({ collection, namespace, name, rv }) => this.collection(collection).unqueue(namespace, name, rv),
    )
  }

  /** Reads everything from storage. Call once, before anything else. */
  async open(): Promise<void> {
    const contents = await this.storage.open()
    this.lastRv = contents.lastRv
    this.visibleRv = contents.lastRv
    this.startRv = contents.lastRv
    for (const row of contents.rows) this.collection(row.collection).put(row.namespace, row.name, row.object)
    this.replay(contents.history)
  }

  /**
   * Fills the rings with the part of the history that is complete, so that watchers can resume across a restart. A write
   * that replaced another makes that one unknown, and an update its own event too, which would need the state before it.
   */
  private replay(history: readonly StorageWrite[]): void {
    const first = history[0]
    if (!first) return
    this.startRv = Math.max(first.rv - 1, 0)
    const floors = new Map<string, number>()
    for (const { collection, rv, operation, previousRv } of history) {
      const unknownRv = operation === 'update' ? rv : operation === 'delete' ? previousRv : 0
      floors.set(collection, Math.max(floors.get(collection) ?? this.startRv, unknownRv))
    }
    for (const [name, loaded] of this.collections) {
      this.collections.set(name, loaded.withFloor(Math.max(this.startRv, floors.get(name) ?? 0)))
    }
    for (const [name, floor] of floors) {
      if (!this.collections.has(name)) this.collections.set(name, new Collection(name, floor))
    }
    for (const entry of history) {
      const { ring } = this.collection(entry.collection)
      if (entry.rv <= ring.floorRv) continue
      // A deleted object's last state is its previous one but for the version.
      ring.push(this.eventOf(entry, entry.operation === 'delete' ? entry.object : undefined))
    }
  }

  /** Version of the newest write readers can see. */
  get head(): number {
    return this.visibleRv
  }

  /** Whether the last writes found no room on the disk. */
  get isDiskFull(): boolean {
    return this.groups.isDiskFull
  }

  collection(name: string): Collection {
    let collection = this.collections.get(name)
    if (!collection) {
      collection = new Collection(name, this.startRv)
      this.collections.set(name, collection)
    }
    return collection
  }

  get names(): Iterable<string> {
    return this.collections.keys()
  }

  /** Hears every committed event, in order, in the same turn in which it becomes visible. */
  listen(listener: StoreListener): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /**
   * Hears every new state in the turn in which it is queued, before any request can read it. What the listener writes goes
   * to the disk in the same group.
   */
  listenQueued(listener: QueueListener): () => void {
    this.queueListeners.add(listener)
    return () => this.queueListeners.delete(listener)
  }

  /** Stores a new state. The object is taken over, gets its version and is frozen. */
  put(collectionName: string, object: KubeObject): PendingWrite {
    const namespace = object.metadata?.namespace ?? ''
    const name = object.metadata?.name ?? ''
    const collection = this.collection(collectionName)
    const before = collection.findHead(namespace, name)
    const rv = this.nextRv()
    const metadata = { ...object.metadata }
    metadata.resourceVersion = String(rv)
    object.metadata = metadata
    freezeJson(object)
    collection.queue(namespace, name, rv, object)
    const pending = this.enqueue({
      rv,
      collection: collectionName,
      namespace,
      name,
      operation: before ? 'update' : 'create',
      previousRv: Number(before?.metadata?.resourceVersion ?? 0),
      object,
    })
    for (const listener of this.queueListeners) listener(collectionName, object)
    return pending
  }

  /** Removes an object whose final state is `object`; the answer carries the version of the removal. */
  remove(collectionName: string, object: KubeObject): PendingWrite {
    const namespace = object.metadata?.namespace ?? ''
    const name = object.metadata?.name ?? ''
    const collection = this.collection(collectionName)
    const before = collection.findHead(namespace, name)
    const rv = this.nextRv()
    const final = freezeJson({ ...object, metadata: { ...object.metadata, resourceVersion: String(rv) } })
    collection.queue(namespace, name, rv, undefined)
    return this.enqueue({
      rv,
      collection: collectionName,
      namespace,
      name,
      operation: 'delete',
      previousRv: Number(before?.metadata?.resourceVersion ?? 0),
      object: final,
    })
  }

  /**
   * Settles once every write queued so far is durable and visible. An answer that was decided against the head without a
   * write of its own (a refusal, a change that changes nothing) waits for it, so that no reader contradicts it afterwards.
   */
  settled(): Promise<void> {
    return this.groups.settled()
  }

  /** Waits for queued writes, also those that earlier ones cause, then closes the storage. */
  async close(): Promise<void> {
    for (let rv = -1; rv !== this.lastRv; ) {
      rv = this.lastRv
      // Who waits for these writes hears of a failure; here only their end matters.
      await this.groups.settled().catch(() => {})
      await new Promise((resolve) => setImmediate(resolve))
    }
    await this.storage.close()
  }

  private nextRv(): number {
    this.groups.check()
    return ++this.lastRv
  }

  private enqueue(write: StorageWrite): PendingWrite {
    return { object: write.object, committed: this.groups.add(write) }
  }

  private publish(write: StorageWrite): void {
    const collection = this.collection(write.collection)
    const previous = collection.find(write.namespace, write.name)
    if (write.operation === 'delete') collection.remove(write.namespace, write.name)
    else collection.put(write.namespace, write.name, write.object)
    collection.unqueue(write.namespace, write.name, write.rv)
    this.visibleRv = write.rv
    const event = this.eventOf(write, previous)
    collection.publish(event)
    for (const listener of this.listeners) listener(write.collection, event)
  }

  private eventOf(write: StorageWrite, previous: KubeObject | undefined): StoreEvent {
    return {
      rv: write.rv,
      type: write.operation === 'delete' ? 'DELETED' : previous ? 'MODIFIED' : 'ADDED',
      namespace: write.namespace,
      name: write.name,
      object: write.object,
      previous,
      committedAtMs: this.clock.now().getTime(),
      sizeBytes: sizeInBytes(write.object),
      frames: noFrames,
    }
  }
}

const noFrames: readonly EventFrame[] = []

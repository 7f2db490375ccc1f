import { Worker } from 'node:worker_threads'
import type { Journal, JournalEntry, JournalState } from './journal.js'
import { StorageError, type StorageErrorCode } from './storage.js'

/** To the thread. Each is answered once, in order. */
export type ThreadRequest =
  | { readonly type: 'open' }
  | { readonly type: 'commit'; readonly entries: readonly JournalEntry[] }
  | { readonly type: 'close' }

/** From the thread: entries that belong to the answer of `open`, and the answers. */
export type ThreadReply =
  | { readonly type: 'entries'; readonly entries: readonly JournalEntry[] }
  | { readonly type: 'done'; readonly state?: JournalState }
  | { readonly type: 'failed'; readonly code?: StorageErrorCode; readonly message: string }

/** What the thread is started with. */
export interface ThreadOptions {
  readonly directory: string
  readonly durability: 'normal' | 'full'
}

interface Waiting {
  resolve(state: JournalState | undefined): void
  reject(error: Error): void
}

/**
 * The journal in a thread of its own: SQLite's work and its waiting for the disk take nothing from the thread that answers
 * requests. `program` is the file that runs there, `journal-thread` as one plain JavaScript file.
 */
export class ThreadJournal implements Journal {
  private worker: Worker | undefined
  private readonly waiting: Waiting[] = []
  private onEntries: (entries: readonly JournalEntry[]) => void = () => {}
  private ended: Error | undefined
  private unreadable: StorageError | undefined

  constructor(
    private readonly program: string,
    private readonly options: ThreadOptions,
  ) {}

  async open(onEntries: (entries: readonly JournalEntry[]) => void): Promise<JournalState> {
    this.onEntries = onEntries
    const worker = new Worker(this.program, { name: 'journal', workerData: this.options, execArgv: [] })
    this.worker = worker
    worker.on('message', (reply: ThreadReply) => this.receive(reply))
    worker.on('error', (error) => this.end(error))
    worker.on('exit', (code) => this.end(new Error(`the thread of the journal ended with ${code}`)))
    const state = await this.ask({ type: 'open' })
    if (this.unreadable) throw this.unreadable
    if (!state) throw new StorageError('StorageCorrupt', 'the journal opened without a state')
    return state
  }

  commit(entries: readonly JournalEntry[]): Promise<void> {
    return this.ask({ type: 'commit', entries }).then(() => undefined)
  }

  async close(): Promise<void> {
    const { worker } = this
    this.worker = undefined
    if (!worker || this.ended) return
    // A thread that failed to open has nothing to close; either way it is ended here.
    await this.send(worker, { type: 'close' }).catch(() => undefined)
    await worker.terminate()
  }

  private ask(request: ThreadRequest): Promise<JournalState | undefined> {
    if (!this.worker) throw new StorageError('StorageClosed', 'the storage is closed')
    return this.send(this.worker, request)
  }

  private send(worker: Worker, request: ThreadRequest): Promise<JournalState | undefined> {
    if (this.ended) return Promise.reject(this.ended)
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject })
      worker.postMessage(request)
    })
  }

  private receive(reply: ThreadReply): void {
    if (reply.type === 'entries') {
      this.tell(reply.entries)
      return
    }
    const waiting = this.waiting.shift()
    if (reply.type === 'done') waiting?.resolve(reply.state)
    else waiting?.reject(reply.code ? new StorageError(reply.code, reply.message) : new Error(reply.message))
  }

  /** An entry that cannot be read fails the open, once the thread is done with it: thrown here it would be lost. */
  private tell(entries: readonly JournalEntry[]): void {
    if (this.unreadable) return
    try {
      this.onEntries(entries)
    } catch (cause) {
      const message = `cannot read the database in ${this.options.directory}`
      this.unreadable = new StorageError('StorageCorrupt', message, { cause })
    }
  }

  private end(error: Error): void {
    this.ended ??= error
    for (const waiting of this.waiting.splice(0)) waiting.reject(this.ended)
  }
}

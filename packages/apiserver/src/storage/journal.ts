import type { StorageWrite } from './storage.js'

/** A write as the journal keeps it: the object as JSON. */
export type JournalEntry = Omit<StorageWrite, 'object'> & { readonly json: string }

/** What a journal knows besides its entries. */
export interface JournalState {
  /** Deletions up to this version are forgotten. */
  readonly compactedRv: number
  /** Every version handed out from now on is greater than this one. */
  readonly lastRv: number
}

/** Where entries go to survive, in this thread or in one of its own. */
export interface Journal {
  /** Tells every entry that is still known, some at a time, in no particular order. */
  open(onEntries: (entries: readonly JournalEntry[]) => void): Promise<JournalState>
  /** Keeps the group, all or nothing. It is as durable as promised once the promise settles, or at once without one. */
  commit(entries: readonly JournalEntry[]): Promise<void> | undefined
  close(): Promise<void>
}

import type { KubeClient } from '@corral/kube'
import type { Flags } from './scenario.js'

export type ColumnId = 'ours-embedded' | 'ours-real' | 'upstream'

/** A running controller manager. */
export interface ManagerUnderTest {
  stop(): Promise<void>
}

/** An API server and a controller manager on it, ready to be told what to do. */
export interface Column {
  readonly id: ColumnId
  readonly title: string
  /** The administrator's client. */
  readonly client: KubeClient
  /** Versions and hashes of what ran, for the result file. */
  readonly facts: Readonly<Record<string, unknown>>
  startManager(flags: Flags): Promise<ManagerUnderTest>
  /** What the API server's audit log says about the manager's calls, where there is one. */
  calls?(): readonly ManagerCall[]
  close(): Promise<void>
}

/** One kind of call that a manager made, and how the server answered. */
export interface ManagerCall {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly allowed: boolean
  /** One of the objects it was about. */
  readonly example: string
}

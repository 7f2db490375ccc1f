import type { CellExit, LaunchPlan, PodPlan, Tier } from '../isolation/isolation.js'

/** Raised whenever a message changes its meaning. A main of another version drains the cradle and starts its own. */
export const cradleProtocolVersion = 1

export const cradleSocketName = 'cradle.sock'

/** What a cradle is started with, as JSON in its first argument. */
export interface CradleConfig {
  dataDir: string
  tier: Exclude<Tier, 'gvisor'>
  supervisor: SupervisorProgram
  /** Absolute path of bwrap; on the bubblewrap tier only. */
  bwrapPath?: string
  disableUserns: boolean
  /** Without a main for this long it ends its pods and itself. */
  lonelyAfterMs: number
}

/** The compiled supervisor, or the Node one with the interpreter that runs it. Paths lie in the data directory. */
export type SupervisorProgram = { kind: 'native'; path: string } | { kind: 'node'; nodePath: string; script: string }

export interface CellRecord {
  podUid: string
  container: string
  attempt: number
  startedAt: string
  /** File name of its socket below `<data>/cradle/s/`. */
  socket: string
  stdin: boolean
  tty: boolean
  /** On the process tier: where a unix socket may stand for a port. */
  directory: string
  exit?: CellExit
}

export interface Hello {
  version: number
  tier: Tier
  pid: number
  limits: 'enforced' | 'partial' | 'none'
}

/** Requests carry an id; `Hello` is sent unasked as the first line. One JSON object per line in both directions. */
export type CradleRequest =
  | { op: 'preparePod'; pod: PodPlan }
  | { op: 'launch'; plan: LaunchPlan }
  | { op: 'list' }
  | { op: 'kill'; cell: CellKey }
  | { op: 'acknowledge'; cell: CellKey }
  | { op: 'releasePod'; podUid: string }
  | { op: 'shutdown' }
  /** Turns the connection into a framed one: output of the main process, its stdin and its size. */
  | { op: 'attach'; cell: CellKey; stdin: boolean }

export interface CellKey {
  podUid: string
  container: string
  attempt: number
}

export type CradleMessage =
  | { hello: Hello }
  | { id: number; result: unknown }
  | { id: number; error: { code: string; message: string } }
  | { event: 'exit'; cell: CellKey; exit: CellExit }

export function cellKeyText(key: CellKey): string {
  return `${key.podUid}/${key.container}/${key.attempt}`
}

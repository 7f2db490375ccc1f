import type {
  BrakeReason,
  CellExit,
  LaunchPlan,
  NetworkReport,
  OomReport,
  PodLimits,
  PodPlan,
  PodReach,
  SnapshotAttachment,
  Tier,
} from '../../isolation/isolation.js'

/** Raised whenever a message changes its meaning. A main of another version drains the cradle and starts its own. */
export const cradleProtocolVersion = 3

export const cradleSocketName = 'cradle.sock'

/** What a new cradle says to the main that started it: it accepts connections, or another one has the directory. */
export const cradleLines = { ready: 'ready\n', locked: 'locked\n' } as const

/** What a cradle is started with, as JSON in its first argument. */
export interface CradleConfig {
  dataDir: string
  tier: Tier
  supervisor: SupervisorProgram
  /** What the tier's isolation tells the tier's cells; the cradle does not look into it. */
  tierOptions: Readonly<Record<string, unknown>>
  /** Without a main for this long it ends its pods and itself, unless a main asked for more time with `keep`. */
  idleShutdownMs: number
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
  /** The pod's directory: on a tier without networks a unix socket below it may stand for a port. */
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
  | { op: 'setNetwork'; podUid: string; network: PodReach }
  /** Answered with `{}`; a cradle that does not know the request answers null. */
  | { op: 'attachSnapshot'; podUid: string; snapshot: SnapshotAttachment }
  /** A cradle that does not know the request answers null. */
  | { op: 'setLimits'; podUid: string; limits: PodLimits }
  | { op: 'launch'; plan: LaunchPlan }
  | { op: 'list' }
  /** What was refused to the pods so far; a cradle that does not know the request answers null. */
  | { op: 'networkReports' }
  /** What the kernel ended in the pods so far; the same holds. */
  | { op: 'oomReports' }
  | { op: 'kill'; cell: CellKey }
  | { op: 'halt'; cell: CellKey }
  | { op: 'acknowledge'; cell: CellKey }
  | { op: 'releasePod'; podUid: string }
  /** Without a main the cradle stays at least until then (milliseconds since the epoch; 0: no such time). */
  | { op: 'keep'; untilMs: number }
  /** When this main goes away the cradle ends its pods and itself at once; one that does not know it stays as ever. */
  | { op: 'endWithMain' }
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
  | { event: 'network'; report: NetworkReport }
  /** A main that does not know it leaves it out. */
  | { event: 'oom'; report: OomReport }
  | { event: 'braked'; podUid: string; reason: BrakeReason }

export function cellKeyText(key: CellKey): string {
  return `${key.podUid}/${key.container}/${key.attempt}`
}

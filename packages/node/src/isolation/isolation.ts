import type { ByteStream, DuplexProcess, ExecStreamOptions } from '@corral/ports'
import type { EgressRefused, OomKills } from '@corral/resources'

export type Tier = 'bubblewrap' | 'process'

export interface ProbeReport {
  tier: Tier
  usable: boolean
  /** Whether memory, cpu and pid limits are really enforced here. */
  limits: 'enforced' | 'partial' | 'none'
  /** What was checked, in order. */
  checks: { name: string; passed: boolean; detail?: string }[]
  /** Whether pods get snapshots copy-on-write; else they are copied, and this says why. */
  snapshots?: { copyOnWrite: boolean; detail?: string }
  /** When it is not usable: what the operator can do about it. */
  remedy?: string
}

export interface BindMount {
  source: string
  target: string
  readOnly: boolean
  /**
   * `device:inode` of what must turn up at the target, where the source lies within a pod's reach: between our look at
   * it and the mount a pod could put a link in its place. A cell in which something else turned up does not start.
   */
  identity?: string
}

/** One allowed destination: an exact host name, or `*.example.org`. */
export interface EgressRule {
  host: string
  port: number
}

/** A name that resolves inside the pod and is dialled by the platform: the broker's Service. */
export interface HostService {
  names: readonly string[]
  port: number
  /** Served on the pod's own 127.0.0.1 as well as by name: some clients speak plain HTTP nowhere else. */
  onLoopback?: boolean
  /** Only pods whose egress names this word have the service; every pod has one without a word. */
  grant?: string
  target: { host: string; port: number } | { socketPath: string }
}

/** What of the network was refused to a pod since it began; it only grows. */
export interface NetworkReport extends EgressRefused {
  podUid: string
  /** The limit on connections that was reached last. */
  connectionLimit?: { of: 'pod' | 'node' | 'second'; connections: number }
}

/** What a pod may connect to. */
export type PodReach = Pick<PodPlan, 'egress' | 'services'>

/** A snapshot for one pod. Data only. */
export interface SnapshotAttachment {
  name: string
  /** The host's uid that owns the files of the trees. */
  ownerUid: number
  /** Each tree appears in every cell at `target`; what the pod changes of it is kept in `directory`, which is the pod's. */
  trees: readonly { source: string; target: string; directory: string }[]
}

/** What all containers of a pod share: a network namespace, a uid, a cgroup. Data only. */
export interface PodPlan {
  podUid: string
  namespace: string
  name: string
  /** Address of 100.64.0.0/10 on the pod's own loopback. */
  podIP: string
  hostname: string
  /** The host's uid and gid of every process of the pod; never 0 where the tier isolates. */
  hostUid: number
  egress: readonly EgressRule[]
  services: readonly HostService[]
  limits: ResourceLimits
  /** The pod's own directory below the data directory. */
  directory: string
}

export interface ResourceLimits {
  memoryBytes?: number
  cpuMillis?: number
  /** Share of the processor while others want it too, as the CPU request it stands for. */
  cpuWeightMillis?: number
  pids?: number
}

/** The limits of a pod as a whole and of each of its containers by name. */
export interface PodLimits {
  pod: ResourceLimits
  containers: Readonly<Record<string, ResourceLimits>>
}

/** One run of one container. Data only, made by a pure function from the pod. */
export interface LaunchPlan {
  podUid: string
  container: string
  /** 0 for the first run, +1 for each restart. */
  attempt: number
  argv: readonly string[]
  env: Readonly<Record<string, string>>
  workingDir: string
  /** What the process sees as its own uid and gid. */
  uid: number
  gid: number
  mounts: readonly BindMount[]
  /** Size-limited memory file systems (emptyDir with medium Memory). */
  tmpfs: readonly { target: string; sizeBytes?: number }[]
  /** The root file system of an image, shown read-only in place of the host's tools. Absent: the host's. */
  root?: string
  readOnlyRoot: boolean
  limits: ResourceLimits
  stdin: boolean
  tty: boolean
  /** Output is appended here in the CRI log format: `<RFC3339Nano> stdout|stderr F|P <line>`. */
  logPath: string
}

/**
 * Why a pod is told of: it has all the processes it may have, a few of them run at a time, or some were ended because they
 * had most of the machine's terminals, or of its open files.
 */
export type BrakeReason = 'full' | 'slowed' | 'terminals' | 'files'

/** What the kernel ended in a pod for want of memory, over all of its containers. */
export interface OomReport extends OomKills {
  podUid: string
}

export interface CellExit {
  exitCode: number
  signal?: number
  oomKilled: boolean
  startedAt: string
  finishedAt: string
  /** Set when the cell was lost with its cradle instead of ending by itself. */
  lost?: boolean
}

/** A running container: its main process and whatever is exec'd into it, behind its supervisor. */
export interface Cell {
  readonly podUid: string
  readonly container: string
  readonly attempt: number
  readonly startedAt: string
  readonly exited: Promise<CellExit>
  /** How it ended, where that was known when this process first saw it. */
  readonly knownExit: CellExit | undefined
  exec(
    options: Omit<ExecStreamOptions, 'container'> & { env?: Record<string, string>; workingDir?: string },
  ): Promise<DuplexProcess>
  /** The main process's own streams, from now on. */
  attach(options: { stdin: boolean; tty: boolean; signal?: AbortSignal }): Promise<DuplexProcess>
  /** Connects to a port inside the pod's network namespace. */
  dial(port: number, options?: { host?: string; signal?: AbortSignal }): Promise<ByteStream>
  /** To the main process. */
  signal(signal: NodeJS.Signals): Promise<void>
  /** Everything in the cell but the main process, at once. */
  halt(): Promise<void>
  /** Everything in the cell, at once. */
  kill(): Promise<void>
}

/** One command of the host's own, run to its end; it sees the toolchain and these directories under their own paths. */
export interface OneShotCommand {
  argv: readonly string[]
  readable: readonly string[]
  writable: readonly string[]
}

/** A way of isolating pods on this machine. Every tier passes the same suite; what it cannot hold back it reports. */
export interface Isolation {
  readonly tier: Tier
  probe(): Promise<ProbeReport>
  /** The argument vector that runs a command confined, outside of any pod; absent on a tier that cannot. */
  confine?(command: OneShotCommand): string[]
  /** Network namespace, egress listeners, cgroup. Safe to repeat with the same plan. */
  preparePod(plan: PodPlan): Promise<void>
  /**
   * From now on the pod reaches exactly this. Connections to what is not in it any more are ended before this settles;
   * what stays keeps its addresses and its connections. Safe to repeat. `restricted: false` where the tier has no network
   * of its own to close, `PodNotPrepared` where there is no such pod.
   */
  setNetwork(podUid: string, network: PodReach): Promise<{ restricted: boolean }>
  /**
   * Gives the pod a copy-on-write view of the trees: in the cells that run and in those that are launched from now on. Safe to
   * repeat with the same snapshot. `Unsupported` where this machine cannot, `PodNotPrepared` where there is no such pod.
   */
  attachSnapshot(podUid: string, snapshot: SnapshotAttachment): Promise<void>
  /**
   * From now on the pod and its containers are held to these limits, those that run and those that are launched later. Safe to
   * repeat. `enforced: false` where this machine holds pods to none, `PodNotPrepared` where there is no such pod.
   */
  setLimits(podUid: string, limits: PodLimits): Promise<{ enforced: boolean }>
  launch(plan: LaunchPlan): Promise<Cell>
  /** Cells that outlived an earlier main process. Exited ones are reported once, with their exit. */
  adopt(): Promise<Cell[]>
  /** What is refused to pods from now on is told here, as is what was refused to pods that are there already. */
  watchNetwork(listener: (report: NetworkReport) => void): void
  /** As `watchNetwork`, for processes that the kernel ends for want of memory; absent where the tier does not count them. */
  watchOomKills?(listener: (report: OomReport) => void): void
  /** Tells, once for a pod, that it is stopped for moments because its processes fail to start others over and over. */
  watchBraked?(listener: (podUid: string, reason: BrakeReason) => void): void
  /** Ends what is left of the pod and removes namespace, listeners and cgroup. Absent is done. */
  releasePod(podUid: string): Promise<void>
  /** Starts what cells need beside the other parts of the platform, ahead of the first cell. Never throws. */
  warmUp?(): void
  /**
   * Cells that outlive this process are kept at least until `time` for the next one to adopt; undefined takes an earlier
   * time back. Best effort: what cannot be told is told again on the next connection.
   */
  keepUntil(time: Date | undefined): Promise<void>
  /**
   * From now on no cell outlives this process, however it ends: said first by one that stops, so that neither a second
   * Ctrl-C nor a machine too busy for an orderly stop leaves cells behind. Best effort.
   */
  announceEnd?(): Promise<void>
  /** `endPods: false` leaves cells running for the next main to adopt; where there are none, nothing is left. */
  close(options: { endPods: boolean }): Promise<void>
}

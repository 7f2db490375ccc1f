import { isTaskWarning, type TaskWarning, taskWarning } from '@corral/protocol'

/** All new files of a result, unpacked. A file larger than that is left out from the start: no result could have it. */
export const maxResultBytes: number = 2048 * 1024 * 1024

export interface CollectPlace {
  /** The work tree. */
  repository: string
  /** Where the platform's own files of the task lie inside the sandbox. */
  scratch: string
}

export interface CollectRequest {
  place: CollectPlace
  /** Name of the directory below `scratch` to work in: one per purpose, so that runs side by side do not meet. */
  workName: string
  /** Which ways to try, in order; see `collectScript`. */
  ways: readonly (1 | 2 | 3 | 4)[]
  baseCommit: string
  branch: string
  resultRef: string
  message: string
  author: { name: string; email: string }
  /** The author where left out. */
  committer?: { name: string; email: string }
  /** The base as a bundle inside the sandbox, for every way but the first. */
  baseBundle?: string
  /** Why an earlier run, of the first way, had no result. */
  failure?: string
  /** Commits at which a shallow base ends. */
  shallow?: readonly string[]
  /** `lfsFilterScript` as a file inside the sandbox, for a task whose files go to Git LFS. */
  lfsFilter?: string
  /**
   * Why an earlier result was not accepted: only files are taken, but for changes of those with a name in `leaveOut` and those
   * above `maxFileBytes`.
   */
  rejected?: { why: string; leaveOut: readonly string[]; maxFileBytes?: number }
  /** The node ended the agent for what it took of the disk: there is little room for the result. */
  isEvicted?: boolean
  /** The file that says how the work was when it was last taken out; see `collectScript`. */
  lastState?: string
}

/** What `collectScript` found. Comes out of a sandbox: parsed and bounded, the commit is a claim to be checked. */
export interface CollectedWork {
  commit: string
  changed: boolean
  /** Whether there is a second bundle with what is not part of the result. */
  kept: boolean
  /** Whether there is an archive of files that are part of neither; `lost` where there are such files and no archive. */
  leftOut: 'yes' | 'no' | 'lost'
  /** Hashes of the contents that its new Git LFS pointers stand for. */
  lfs: string[]
  warnings: TaskWarning[]
}

/** Files of a task inside its sandbox that more than one script uses. */
export const scratchFiles = {
  excludes: (scratch: string): string => `${scratch}/excludes`,
  setup: (scratch: string): string => `${scratch}/setup`,
  refs: (scratch: string): string => `${scratch}/refs`,
  resultBundle: (scratch: string, workName: string): string => `${scratch}/${workName}/out.bundle`,
  keptBundle: (scratch: string, workName: string): string => `${scratch}/${workName}/kept.bundle`,
  leftOut: (scratch: string, workName: string): string => `${scratch}/${workName}/left-out.tar`,
  lfsFilter: (scratch: string): string => `${scratch}/lfs-filter`,
  lfsObject: (scratch: string, oid: string): string =>
    `${scratch}/lfs/objects/${oid.slice(0, 2)}/${oid.slice(2, 4)}/${oid}`,
  state: (scratch: string, workName: string): string => `${scratch}/${workName}/state`,
} as const

/** The environment `collectScript` runs with. */
export function collectEnvironment(request: CollectRequest): Record<string, string> {
  const { repository, scratch } = request.place
  return {
    REPO: repository,
    WORK: `${scratch}/${request.workName}`,
    EXCLUDE: scratchFiles.excludes(scratch),
    SETUP: scratchFiles.setup(scratch),
    REFS: scratchFiles.refs(scratch),
    WAYS: request.ways.join(' '),
    BASE_COMMIT: request.baseCommit,
    BASE_REF: baseRefOf(request.baseCommit),
    BASE_BUNDLE: request.baseBundle ?? '',
    SHALLOW: (request.shallow ?? []).join('\n'),
    TASK_BRANCH: request.branch,
    RESULT_REF: request.resultRef,
    MESSAGE: request.message,
    LFS_FILTER: request.lfsFilter ?? '',
    LAST_STATE: request.lastState ?? '',
    MAX_FILE_BYTES: String(request.rejected?.maxFileBytes ?? maxResultBytes),
    EVICTED: request.isEvicted ? 'yes' : '',
    REJECTED: request.rejected?.why ?? '',
    FAILURE: request.failure ?? '',
    LEAVE_OUT: request.rejected?.leaveOut.join(' ') ?? '',
    AUTHOR_NAME: request.author.name,
    AUTHOR_EMAIL: request.author.email,
    COMMITTER_NAME: (request.committer ?? request.author).name,
    COMMITTER_EMAIL: (request.committer ?? request.author).email,
  }
}

/** The ref a base travels under in the bundle that brings it in. */
export function baseRefOf(commit: string): string {
  return `refs/corral/base/${commit}`
}

/** Whether the script found the work as it was when it was last taken out. */
export function isUnchanged(stdout: string): boolean {
  return /^unchanged=yes$/m.test(stdout)
}

/** The script's answer; undefined when it is none. The last line may have lost the tab behind a warning about nothing in particular. */
export function parseCollected(stdout: string): CollectedWork | undefined {
  const commit = /^commit=([0-9a-f]{40}|[0-9a-f]{64})$/m.exec(stdout)?.[1]
  const changed = /^changed=(yes|no)$/m.exec(stdout)?.[1]
  if (!commit || !changed) return undefined
  const warnings = stdout.split('\n').flatMap((line) => {
    const [, code = '', about = ''] = /^warning=([A-Za-z]{1,50})(?:\t(.*))?$/.exec(line) ?? []
    return isTaskWarning(code) ? [describe(code, about.trim())] : []
  })
  const [, leftOut = 'no'] = /^left_out=(yes|no|lost)$/m.exec(stdout) ?? []
  return {
    commit,
    changed: changed === 'yes',
    kept: /^kept=yes$/m.test(stdout),
    leftOut: leftOut as CollectedWork['leftOut'],
    lfs: lfsIn(stdout),
    warnings,
  }
}

const lfsIn = (stdout: string): string[] => [...stdout.matchAll(/^lfs=([0-9a-f]{64})$/gm)].map(([, oid]) => oid!)

/** Warnings that are about a path of the work tree; the others carry a name or a reason. */
const pathWarnings = new Set([
  'PathLeftOut',
  'NestedRepository',
  'SetupFileLeftOut',
  'LargeFile',
  'FileTooLarge',
  'NoRoomLeft',
  'GeneratedFile',
  'SubmoduleChanged',
  'ConflictMarkers',
])

function describe(code: Parameters<typeof taskWarning>[0], about: string): TaskWarning {
  if (about === '') return taskWarning(code)
  return taskWarning(code, pathWarnings.has(code) ? { path: unquoted(about) } : { detail: unquoted(about) })
}

const escapes: Record<string, number> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, '\\': 92 }

/** A path as git quotes it (`"sp\303\244t\n"`), read as the bytes it stands for. */
export function unquoted(path: string): string {
  const inner = /^"(.*)"$/s.exec(path)?.[1]
  if (inner === undefined) return path
  const bytes: number[] = []
  for (const [, octal, letter, plain] of inner.matchAll(/\\([0-7]{3})|\\(.)|([^\\]+)/gsu)) {
    if (octal) bytes.push(Number.parseInt(octal, 8))
    else if (letter) bytes.push(escapes[letter] ?? letter.charCodeAt(0))
    else bytes.push(...Buffer.from(plain ?? ''))
  }
  return Buffer.from(bytes).toString('utf8')
}

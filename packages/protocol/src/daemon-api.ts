import * as z from 'zod'

/** The port the daemon listens on inside a sandbox. */
export const daemonPort = 8888

/**
 * The one byte both sides of a parked line say before anything is passed: the daemon when a connection wants the line, the
 * other side when its target is open.
 */
export const reverseHandshake = 1

/** The host name in `CONNECT reverse:PORT`, which parks a line for a port of the sandbox's loopback. */
export const reverseHost = 'reverse'

/** A process id is chosen by the caller: a file name of at most 128 characters. */
export const processIdSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'must be 1-128 letters, digits, dots, dashes or underscores')

const noNul = (value: string): boolean => !value.includes('\0')
const argument = z
  .string()
  .max(128 * 1024)
  .refine(noNul, 'must not contain NUL')

/** An absolute path without NUL. */
export const absolutePathSchema = z
  .string()
  .max(4096)
  .refine((path) => path.startsWith('/') && noNul(path), 'must be an absolute path without NUL')

export const terminalSizeSchema = z.strictObject({
  columns: z.number().int().min(1).max(10_000),
  rows: z.number().int().min(1).max(10_000),
})
export type TerminalSize = z.infer<typeof terminalSizeSchema>

/** `PUT /v1/processes/{id}`: starts a process under this id, or joins the one that has it (the body is then ignored). */
export const startProcessRequestSchema = z.strictObject({
  argv: z
    .array(argument)
    .min(1)
    .max(4096)
    .refine(([program]) => program !== '', 'must begin with the name of a program'),
  /** Added to the daemon's own environment. Never stored. */
  env: z.record(z.string().regex(/^[^=\0]+$/, 'must be a name without "=" and NUL'), argument).optional(),
  cwd: absolutePathSchema.optional(),
  /** Runs it in a terminal of this size: one output stream, and it does not survive a restart of the daemon. */
  tty: terminalSizeSchema.optional(),
  /** `null` (the default without tty) reads end of file at once; `open` can be written to. */
  stdin: z.enum(['open', 'null']).optional(),
  /**
   * `disk` (the default): output goes to files and the process outlives the daemon. `memory`: starts in a third of the
   * time; what the reader has not confirmed is held, a process that is far ahead of its reader waits, and it ends with
   * the daemon.
   */
  keep: z.enum(['disk', 'memory']).optional(),
  /** Written to standard input, which is closed afterwards; base64. */
  input: z
    .base64()
    .max(1024 * 1024)
    .optional(),
  /** A name or number the process runs as; only a daemon that is root can. */
  user: z.string().min(1).max(64).optional(),
})
export type StartProcessRequest = z.infer<typeof startProcessRequestSchema>

export const processExitSchema = z.object({
  /** 0-255; a process ended by signal n reports 128 + n. -1: the end was not seen. */
  exit_code: z.number().int().min(-1).max(255),
  signal: z.number().int().min(1).max(64).optional(),
  message: z.string().max(4096).optional(),
  /** Processes of the sandbox that the kernel ended for want of memory while this one ran; absent where that is not known. */
  oom_kills: z.number().int().nonnegative().optional(),
  time: z.iso.datetime(),
})
export type ProcessExitRecord = z.infer<typeof processExitSchema>

export const processRecordSchema = z.object({
  id: processIdSchema,
  argv: z.array(z.string()),
  cwd: z.string(),
  tty: terminalSizeSchema.optional(),
  stdin: z.enum(['open', 'null']),
  pid: z.number().int().positive().optional(),
  started_at: z.iso.datetime(),
  /** Bytes of the interleaved output so far. */
  output_bytes: z.number().int().nonnegative(),
  /** Present once the process has ended. */
  exit: processExitSchema.optional(),
})
export type ProcessRecord = z.infer<typeof processRecordSchema>

export const processListSchema = z.object({ processes: z.array(processRecordSchema) })

export const signalNames = [
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGKILL',
  'SIGUSR1',
  'SIGUSR2',
  'SIGTERM',
  'SIGCONT',
  'SIGSTOP',
  'SIGTSTP',
  'SIGWINCH',
] as const
export type SignalName = (typeof signalNames)[number]

/** `POST .../signal`: to the whole process group unless `group` is false. */
export const signalRequestSchema = z.strictObject({ signal: z.enum(signalNames), group: z.boolean().optional() })
export type SignalRequest = z.infer<typeof signalRequestSchema>

/** `POST /task`: the runner's one task. */
export const runnerTaskSchema = z.object({
  taskID: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'must be usable as a file name'),
  message: z.string().max(1024 * 1024),
})
export type RunnerTask = z.infer<typeof runnerTaskSchema>

export const fileTypes = ['file', 'directory', 'symlink', 'other'] as const
export const fileInfoSchema = z.object({
  name: z.string(),
  type: z.enum(fileTypes),
  size: z.number().int().nonnegative(),
  /** Permission bits as four octal digits. */
  mode: z.string(),
  modified_at: z.iso.datetime(),
})
export type FileInfo = z.infer<typeof fileInfoSchema>

/** What `GET /v1/files/{directory}` answers, as JSON; `truncated` when the directory has more entries than are listed. */
export const directoryListingSchema = z.object({
  entries: z.array(fileInfoSchema),
  truncated: z.boolean().optional(),
})
export type DirectoryListing = z.infer<typeof directoryListingSchema>

/** Header names of the file routes. */
export const fileHeaders = {
  type: 'x-corral-type',
  mode: 'x-corral-mode',
  size: 'x-corral-size',
  modifiedAt: 'x-corral-modified-at',
} as const

/** Sizes of daemon requests that are held in memory; streams (files, archives, stdin) have no limit of their own. */
export const daemonLimits = {
  jsonBodyBytes: 2 * 1024 * 1024,
  listingEntries: 10_000,
  processes: 1_000,
  treeEntries: 100_000,
  /** A watch costs memory of the kernel and of the daemon. */
  watchedDirectories: 20_000,
} as const

/** The directory set aside for work in a sandbox, and the home directory of its user. */
export const sandboxWorkspaceSchema = z.object({ directory: z.string().min(1), home: z.string().min(1) })
export type SandboxWorkspace = z.infer<typeof sandboxWorkspaceSchema>

/** The daemon's routes, so that neither side spells a path itself. */
export const daemonRoutes = {
  health: '/healthz',
  task: '/task',
  processes: '/v1/processes',
  process: (id: string): string => `/v1/processes/${encodeURIComponent(id)}`,
  output: (id: string): string => `/v1/processes/${encodeURIComponent(id)}/output`,
  stdin: (id: string): string => `/v1/processes/${encodeURIComponent(id)}/stdin`,
  signal: (id: string): string => `/v1/processes/${encodeURIComponent(id)}/signal`,
  resize: (id: string): string => `/v1/processes/${encodeURIComponent(id)}/resize`,
  confirm: (id: string): string => `/v1/processes/${encodeURIComponent(id)}/confirm`,
  file: (path: string): string => `/v1/files${encodePath(path)}`,
  tar: (path: string): string => `/v1/tar${encodePath(path)}`,
  tree: (path: string): string => `/v1/tree${encodePath(path)}`,
  watch: (path: string): string => `/v1/watch${encodePath(path)}`,
  fileOperation: '/v1/file-operations',
  binding: '/v1/binding',
  metrics: '/v1/metrics',
  workspace: '/v1/workspace',
  reversePort: (port: number) => `/v1/reverse-ports/${port}`,
} as const

/** An absolute path, dot segments resolved, as the tail of a URL: the daemon's file routes carry paths literally. */
export function encodePath(path: string): string {
  const parts: string[] = []
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue
    if (part === '..') parts.pop()
    else parts.push(encodeURIComponent(part))
  }
  return `/${parts.join('/')}`
}

import { buildStates } from '@corral/resources/task-words'
import * as z from 'zod'
import { createTaskRequestSchema } from './task-api.js'
import { taskEventSchema } from './task-events.js'

const task = createTaskRequestSchema.shape
const time = z.iso.datetime({ offset: true })

/** `POST /environments`: the environment of a branch, made where there is none, and built. */
export const buildEnvironmentRequestSchema = z.strictObject({
  repo: z.string().min(1).max(4_096),
  /** The branch it is built from. May be left out for a repository on the server's disk: the one that is checked out. */
  ref: task.base_branch,
  part: task.part,
  environment_file: task.environment_file,
  submodules: task.submodules,
  lfs: task.lfs,
  sandbox: task.sandbox,
  /** Builds also where there is a snapshot with the same key. */
  no_cache: z.boolean().optional(),
})
export type BuildEnvironmentRequest = z.infer<typeof buildEnvironmentRequestSchema>

/** `POST /environments/{name}/build`. */
export const rebuildEnvironmentRequestSchema = z.strictObject({ no_cache: z.boolean().optional() })
export type RebuildEnvironmentRequest = z.infer<typeof rebuildEnvironmentRequestSchema>

/** What else than its files the sandbox of a build had. */
export const environmentSettingsViewSchema = z.object({
  /** Variables of the file, its services and toolchains. */
  env: z.record(z.string(), z.string()),
  /** Directories for PATH, the first first: of the repository, or absolute ones of toolchains. */
  path: z.array(z.string()),
  /** `node 22.3.0`, as they were chosen. */
  tools: z.array(z.string()),
  image: z.string().optional(),
  resources: z
    .object({ cpu: z.string().exactOptional(), memory: z.string().exactOptional(), disk: z.string().exactOptional() })
    .optional(),
})
export type EnvironmentSettingsView = z.infer<typeof environmentSettingsViewSchema>

export const environmentSnapshotViewSchema = z.object({
  name: z.string(),
  key: z.string(),
  commit: z.string(),
  lockfiles: z.array(z.string()),
  built_at: time,
  size_bytes: z.number().int(),
  files: z.number().int(),
  last_used_at: time.optional(),
  /** Not known of what earlier versions built. */
  settings: environmentSettingsViewSchema.optional(),
})

export const environmentBuildViewSchema = z.object({
  /** Counts the builds of the environment. */
  number: z.number().int(),
  attempt: z.number().int(),
  state: z.enum(buildStates),
  started_at: time,
  finished_at: time.optional(),
  commit: z.string().optional(),
  key: z.string().optional(),
  snapshot: z.string().optional(),
  /** Where it runs; that of a failed build is kept for a while. */
  sandbox: z.string().optional(),
  settings: environmentSettingsViewSchema.optional(),
  cause: z.object({ code: z.string(), message: z.string(), hint: z.string().optional() }).optional(),
})
export type EnvironmentBuildView = z.infer<typeof environmentBuildViewSchema>

export const environmentViewSchema = z.object({
  name: z.string(),
  repo: z.string(),
  ref: z.string().optional(),
  part: z.string().optional(),
  environment_file: z.string().optional(),
  /** There is a snapshot that tasks get. */
  built: z.boolean(),
  /** Why the newest one is to be built anew, where it is. */
  stale: z.string().optional(),
  key: z.string().optional(),
  /** The newest first. */
  snapshots: z.array(environmentSnapshotViewSchema),
  /** The last build. */
  build: environmentBuildViewSchema.optional(),
  created_at: time,
})
export type EnvironmentView = z.infer<typeof environmentViewSchema>

export const environmentListSchema = z.object({ environments: z.array(environmentViewSchema) })

/** `GET /environments/{name}/events`: what the last build said after a sequence. */
export const environmentEventsSchema = z.object({
  build: environmentBuildViewSchema.optional(),
  events: z.array(taskEventSchema),
})
export type EnvironmentEvents = z.infer<typeof environmentEventsSchema>

import * as z from 'zod'
import { taskEnvironmentSchema } from './agent-task-environment.js'
import { conditionSchema, dateTime, int32, int64, objectName, typeMeta } from './schema-parts.js'
import { branchName, repositorySchema } from './task-parts.js'
import { buildStates } from './task-words.js'

export const environmentSpecSchema = z
  .object({
    repository: repositorySchema.describe('The repository it is built from.'),
    ref: branchName()
      .exactOptional()
      .describe('The branch its file and builds come from, and no other; the default branch where unset.'),
    part: z.string().max(63).exactOptional().describe('The part of the environment file it is about.'),
    file: z
      .string()
      .max(1024)
      .exactOptional()
      .describe('Path of the environment file in the repository; .corral/environment.yaml where unset.'),
    sandbox: z
      .object({
        pool: objectName().exactOptional().describe('SandboxWarmPool to claim from.'),
        template: objectName().exactOptional().describe('SandboxTemplate to start from; not together with a pool.'),
      })
      .exactOptional()
      .describe('Where builds run; the pool "default" where unset.'),
    build: z
      .object({
        request: z.string().min(1).max(128).describe('A build is made for every value this has had, one at a time.'),
        noCache: z
          .boolean()
          .exactOptional()
          .describe('Build although there is a snapshot with the same key. Without it such a build ends at once.'),
      })
      .exactOptional()
      .describe('The build that is asked for.'),
  })
  .describe('What is built, and whether it is to be built now.')

/** What else than files a sandbox needs to be the one that set-up ran in. */
export const environmentSettingsSchema = taskEnvironmentSchema.pick({
  env: true,
  path: true,
  tools: true,
  image: true,
  resources: true,
})
export type EnvironmentSettings = z.infer<typeof environmentSettingsSchema>

export const environmentSnapshotSchema = z.object({
  name: z.string().describe('As the annotation corral.dev/snapshot of a pod names it.'),
  key: z
    .string()
    .describe('Digest of set-up, variables, tools, root file system, architecture, names of secrets and lock files.'),
  baseKey: z.string().describe('The same without the lock files.'),
  commit: z.string().describe('The commit it was built from.'),
  lockfiles: z
    .array(z.string())
    .meta({ 'x-kubernetes-list-type': 'atomic', description: 'The lock files its key is made of.' }),
  builtAt: dateTime().describe('When it was sealed.'),
  sizeBytes: int64().min(0).describe('What it takes on the disk.'),
  files: int64().min(0).describe('Files, directories and links in it.'),
  lastUsedAt: dateTime().exactOptional().describe('When a task last got it.'),
  settings: environmentSettingsSchema.exactOptional().describe('Variables, tools, image and limits it was built with.'),
})

export const environmentBuildSchema = z.object({
  request: z.string().describe('The value of spec.build.request it is for.'),
  number: int32().min(1).describe('1 for the first build of this environment.'),
  attempt: int32().min(1).describe('1 for the first; a build whose sandbox was lost is tried again.'),
  uid: z.string().describe('Names its events.'),
  state: z.enum(buildStates).describe('What it is doing, or how it ended.'),
  noCache: z.boolean().exactOptional().describe('Whether snapshots with the same key do not count.'),
  startedAt: dateTime().describe('When it began.'),
  attemptStartedAt: dateTime().describe('When this attempt began.'),
  finishedAt: dateTime().exactOptional().describe('When it had ended.'),
  claimName: z.string().describe('The SandboxClaim it runs in.'),
  sandboxName: z.string().exactOptional().describe('The Sandbox it was given.'),
  podName: z.string().exactOptional().describe('The pod of that Sandbox.'),
  podUid: z.string().exactOptional().describe('The uid of that pod.'),
  commit: z.string().exactOptional().describe('The commit it is built from.'),
  key: z.string().exactOptional().describe('The key of what it makes.'),
  snapshot: z.string().exactOptional().describe('The snapshot it made, or found to be there.'),
  settings: environmentSettingsSchema.exactOptional().describe('Variables, tools, image and limits of its sandbox.'),
  cause: z
    .object({
      code: z.string().describe('A code of the cause table.'),
      message: z.string().describe('What happened, with the last lines of its output.'),
      hint: z.string().exactOptional().describe('What to do next.'),
    })
    .exactOptional()
    .describe('Why it failed.'),
})

export const environmentStatusSchema = z
  .object({
    observedGeneration: int64().min(0).exactOptional().describe('The generation of the spec this status is about.'),
    conditions: z
      .array(conditionSchema)
      .exactOptional()
      .meta({
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['type'],
        description: 'Built: there is a snapshot. Stale: the newest one is to be built anew.',
      }),
    key: z.string().exactOptional().describe('The key of the newest snapshot.'),
    snapshots: z
      .array(environmentSnapshotSchema)
      .exactOptional()
      .meta({ 'x-kubernetes-list-type': 'atomic', description: 'What tasks can be given, the newest first.' }),
    build: environmentBuildSchema.exactOptional().describe('The last build.'),
  })
  .describe('What was built. Written by the environment controller.')

export const environmentSchema = z
  .object({
    ...typeMeta('corral.dev/v1alpha1', 'Environment'),
    spec: environmentSpecSchema,
    status: environmentStatusSchema.exactOptional(),
  })
  .describe('What tasks on one branch of a repository find set up: built once, outside of any task, kept as snapshots.')

export type Environment = z.infer<typeof environmentSchema>
export type EnvironmentSpec = z.infer<typeof environmentSpecSchema>
export type EnvironmentStatus = z.infer<typeof environmentStatusSchema>
export type EnvironmentBuild = z.infer<typeof environmentBuildSchema>
export type EnvironmentSnapshot = z.infer<typeof environmentSnapshotSchema>

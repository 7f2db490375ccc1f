import * as z from 'zod'
import { dateTime, int32 } from './schema-parts.js'

const toolSchema = z.object({
  name: z.string().describe('Such as go.'),
  version: z.string().describe('The version that is used.'),
  wantedBy: z.string().describe('The file that asks for it.'),
  bin: z.string().describe('Its directory for PATH; empty where it is on PATH by itself.'),
  env: z.record(z.string(), z.string()).exactOptional().describe('Variables it needs.'),
})

const backgroundSchema = z.object({
  name: z.string().describe('What it is called.'),
  run: z.string().exactOptional().describe('Its command.'),
  use: z.string().exactOptional().describe('The ready-made service it is instead.'),
  port: int32().min(1).max(65_535).exactOptional().describe('It is ready once it listens there.'),
  timeoutSeconds: int32().min(1).describe('How long it may take to be ready.'),
  env: z.record(z.string(), z.string()).exactOptional().describe('Variables for it.'),
})

/** What a task was given of the environment its repository declares. */
export const taskEnvironmentSchema = z.object({
  commit: z.string().describe('The commit its file was read from.'),
  source: z.string().exactOptional().describe('The file it was read from.'),
  setup: z.string().exactOptional().describe('The set-up script.'),
  update: z.string().exactOptional().describe('What is run instead on a snapshot with other lock files.'),
  env: z.record(z.string(), z.string()).exactOptional().describe('Variables for set-up and the agent.'),
  path: z.array(z.string()).exactOptional().describe('Directories of the repository that come first on PATH.'),
  tools: z
    .array(toolSchema)
    .exactOptional()
    .meta({ 'x-kubernetes-list-type': 'atomic', description: 'Toolchains that come first on PATH.' }),
  services: z
    .array(backgroundSchema)
    .exactOptional()
    .meta({ 'x-kubernetes-list-type': 'atomic', description: 'Services that run beside the work.' }),
  start: z
    .array(backgroundSchema)
    .exactOptional()
    .meta({ 'x-kubernetes-list-type': 'atomic', description: 'Commands that run beside the agent.' }),
  secrets: z
    .array(
      z.object({
        name: z.string().describe('Of a secret of the platform.'),
        env: z.string().describe('The variable set-up finds it in.'),
      }),
    )
    .exactOptional()
    .meta({ 'x-kubernetes-list-type': 'atomic', description: 'Secrets that set-up is given.' }),
  setupEgress: z.array(z.string()).exactOptional().describe('What set-up may reach.'),
  egress: z.array(z.string()).exactOptional().describe('What the agent may reach.'),
  image: z.string().exactOptional().describe('The imported image whose root file system its sandbox has.'),
  resources: z
    .object({
      cpu: z.string().exactOptional().describe('Cores.'),
      memory: z.string().exactOptional().describe('Of all its processes together.'),
      disk: z.string().exactOptional().describe('Workspace, HOME and /tmp together.'),
    })
    .exactOptional()
    .describe('Limits of the sandbox in place of its template’s.'),
  snapshot: z
    .object({
      name: z.string().describe('As the annotation corral.dev/snapshot of its pod names it.'),
      environment: z.string().describe('The Environment it belongs to.'),
      key: z.string().describe('The key the task needed.'),
      exact: z.boolean().describe('Whether it has that key: nothing is left to set up. Else update is run.'),
      builtAt: dateTime().describe('When it was built.'),
    })
    .exactOptional()
    .describe('The snapshot the task was given.'),
  failure: z
    .object({
      code: z.string().describe('A code of the cause table.'),
      message: z.string().describe('What happened, with the last lines of its output.'),
      hint: z.string().exactOptional().describe('What to do next.'),
    })
    .exactOptional()
    .describe('Why the build the task waited for failed.'),
})

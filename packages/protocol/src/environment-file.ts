import { isImageName, packagesGrant, type SandboxResources } from '@corral/resources/task-words'
import * as z from 'zod'
import type { Check } from './check-api.js'
import {
  checks,
  commands,
  directory,
  egress,
  egressNote,
  keyFiles,
  parts,
  resources,
  secondsOf,
  secrets,
  services,
  start,
  type ToolName,
  toCheck,
  tools,
  variables,
} from './environment-fields.js'

/** Where a repository says what it needs to be worked on. */
export const environmentFilePath = '.corral/environment.yaml'

/** What is larger is no such file. */
export const maxEnvironmentFileBytes: number = 64 * 1024

/** `.corral/environment.yaml`. Unknown fields are refused, so that a typing error is not silently ignored. */
export const environmentFileSchema = z.strictObject({
  version: z.literal(1).describe('The version of this format.'),
  setup: commands
    .optional()
    .describe('Installs what the repository needs; runs under bash -euo pipefail before the agent.'),
  update: commands
    .optional()
    .describe('Brings what set-up left up to date where lock files differ from the snapshot’s; set-up where unset.'),
  key: keyFiles
    .optional()
    .describe('Files and directories whose contents decide what set-up leaves; all known lock files where unset.'),
  env: variables.optional().describe('Variables for set-up and the agent.'),
  path: z.array(directory).max(50).optional().describe('Directories of the repository that come first on PATH.'),
  tools: tools.optional().describe('Toolchains and their versions; version files of the repository where unset.'),
  services: services.optional().describe('Run in the sandbox from before set-up to the end of the task.'),
  start: start.optional().describe('Background commands after set-up, ready before the agent starts.'),
  checks: checks.optional().describe('Commands that judge the work after the agent, where the task names none itself.'),
  egress: z
    .strictObject({
      setup: egress.optional().describe(`What set-up may reach; "${packagesGrant}" where unset.`),
      agent: egress.optional().describe('What the agent may reach; nothing where unset.'),
    })
    .optional()
    .describe(egressNote),
  secrets: secrets.optional().describe('Secrets of the platform for set-up; each has to be granted.'),
  image: z
    .string()
    .refine(isImageName, 'must be the name of an image, as `corral image list` has it')
    .optional()
    .describe(
      'The root file system of the sandbox, imported with `corral image`; it has to be granted. The machine’s where unset.',
    ),
  resources: resources
    .optional()
    .describe('Limits of the sandbox, the template’s where unset; more than those has to be granted.'),
  parts: parts.optional().describe('Parts of a monorepo, one of which a task may name; what a part has wins.'),
})

/** A command that runs beside the work. */
export interface BackgroundCommand {
  name: string
  /** For bash, below the root of the repository. */
  run: string
  port?: number
  timeoutSeconds: number
  env: Record<string, string>
}

export interface EnvironmentService extends Omit<BackgroundCommand, 'run'> {
  run?: string
  /** One that is ready-made: `postgres`, `postgres-15`. */
  use?: string
}

/** What the file asks for, in one form. */
export interface EnvironmentRequest {
  /** The lines of a bash script. */
  setup?: string
  /** The same, for what set-up left with other lock files. */
  update?: string
  /** Paths of the files that decide what set-up leaves. */
  key?: string[]
  env: Record<string, string>
  path: string[]
  checks: Check[]
  egress: { setup: string[]; agent: string[] }
  tools: Partial<Record<ToolName, string>>
  start: BackgroundCommand[]
  services: EnvironmentService[]
  /** Names of secrets, with the variable set-up finds each in. */
  secrets: { name: string; env: string }[]
  /** The imported image whose root file system the sandbox has. */
  image?: string
  /** Limits of the sandbox in place of its template's. */
  resources?: SandboxResources
  /** The directory the chosen part lies in. */
  directory?: string
  /** What a task can name. */
  parts: string[]
}

type File = z.infer<typeof environmentFileSchema>
type Part = NonNullable<File['parts']>[string]
const defaultReadySeconds = 60

/** The file's content with its defaults, for one part of it where that is named; `undefined` where there is no such part. Pure. */
export function environmentRequest(file: File): EnvironmentRequest
export function environmentRequest(file: File, part: string | undefined): EnvironmentRequest | undefined
export function environmentRequest(file: File, part?: string): EnvironmentRequest | undefined {
  const chosen = part === undefined ? undefined : Object.entries(file.parts ?? {}).find(([name]) => name === part)?.[1]
  if (part !== undefined && !chosen) return undefined
  const { path: place, ...own }: Partial<Part> = chosen ?? {}
  const merged = { ...file, ...own, env: { ...file.env, ...own.env } }
  // What the root says runs at the root, also for a task on a part.
  const at = <Key extends 'setup' | 'update' | 'checks' | 'start' | 'services'>(key: Key): string | undefined =>
    own[key] === undefined ? undefined : place
  // A part with a set-up of its own is not updated with what the root says.
  const { setup, update = own.setup === undefined ? file.update : undefined, key } = { ...merged, update: own.update }
  const scriptOf = (lines: string | readonly string[], within: string | undefined): string =>
    [...(within ? [`cd -- ${quoted(within)}`] : []), ...(typeof lines === 'string' ? [lines] : lines)].join('\n')
  return {
    ...(setup ? { setup: scriptOf(setup, at('setup')) } : {}),
    ...(setup && update ? { update: scriptOf(update, at('update')) } : {}),
    ...(key ? { key } : {}),
    env: texts(merged.env),
    path: file.path ?? [],
    checks: (merged.checks ?? [])
      .map(toCheck)
      .map((check) => ({ ...check, command: inDirectory(at('checks'), check.command) })),
    egress: { setup: file.egress?.setup ?? (setup ? [packagesGrant] : []), agent: file.egress?.agent ?? [] },
    tools: texts({ ...file.tools, ...own.tools }),
    start: (merged.start ?? []).map(({ run, ready, timeout }, index) => ({
      name: `start-${index + 1}`,
      run: inDirectory(at('start'), run),
      ...(ready ? { port: ready.port } : {}),
      timeoutSeconds: timeout ? secondsOf(timeout) : defaultReadySeconds,
      env: {},
    })),
    services: (merged.services ?? []).map(({ name, use, run, ready, timeout, env }) => ({
      name,
      ...(use ? { use } : {}),
      ...(run ? { run: inDirectory(at('services'), run) } : {}),
      ...(ready ? { port: ready.port } : {}),
      timeoutSeconds: timeout ? secondsOf(timeout) : defaultReadySeconds,
      env: texts(env ?? {}),
    })),
    secrets: (file.secrets ?? []).map(({ name, env }) => ({
      name,
      env: env ?? name.toUpperCase().replaceAll('-', '_'),
    })),
    ...(file.image ? { image: file.image } : {}),
    ...(file.resources && Object.keys(file.resources).length > 0 ? { resources: texts(file.resources) } : {}),
    ...(place ? { directory: place } : {}),
    parts: Object.keys(file.parts ?? {}),
  }
}

function texts(values: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  )
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

const inDirectory = (place: string | undefined, run: string): string =>
  place === undefined ? run : `cd -- ${quoted(place)} && {\n${run}\n}`

/** What of it an operator has to grant first: everything but the package mirror. */
export function askedEgress({ egress: { setup, agent } }: Pick<EnvironmentRequest, 'egress'>): string[] {
  return [...new Set([...setup, ...agent].map((rule) => rule.toLowerCase()))].filter((rule) => rule !== packagesGrant)
}

/** The JSON Schema of the file, for editors. */
export function environmentJsonSchema(): Record<string, unknown> {
  return { title: environmentFilePath, ...z.toJSONSchema(environmentFileSchema, { io: 'input' }) }
}

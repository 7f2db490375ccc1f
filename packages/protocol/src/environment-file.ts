import { packagesGrant } from '@corral/resources/task-words'
import * as z from 'zod'
import { type Check, checkLimits, checkSchema, checksSchema } from './check-api.js'
import { egressRuleSchema, taskLimits } from './task-api.js'

/** Where a repository says what it needs to be worked on. */
export const environmentFilePath = '.corral/environment.yaml'

/** What is larger is no such file. */
export const maxEnvironmentFileBytes: number = 64 * 1024

const command = z.string().min(1).max(taskLimits.commandCharacters)

const variableName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be the name of a variable')
  .refine((name) => !['PATH', 'HOME', 'REPO', 'SETUP'].includes(name) && !name.startsWith('CORRAL_'), {
    message: 'is set by the platform; directories for PATH go into "path"',
  })

const directory = z
  .string()
  .min(1)
  .max(1_000)
  .regex(/^[^:\n]+$/, 'must be one directory')
  .refine((path) => !path.startsWith('/') && !path.split('/').includes('..'), {
    message: 'must be a directory of the repository, relative to its root',
  })

const egress = z.array(egressRuleSchema).max(taskLimits.egressRules)

const secondsOfUnit = { s: 1, m: 60, h: 3600 } as const

const duration = z
  .string()
  .regex(/^[1-9][0-9]{0,5}(s|m|h)$/, 'must be a duration such as 90s, 10m or 1h')
  .refine((text) => secondsOf(text) <= checkLimits.maxTimeoutSeconds, 'must be 6h at most')

function secondsOf(text: string): number {
  return Number(text.slice(0, -1)) * secondsOfUnit[text.slice(-1) as keyof typeof secondsOfUnit]
}

const checks = z
  .array(
    z.strictObject({
      name: checkSchema.shape.name,
      run: checkSchema.shape.command.describe('Runs with /bin/sh -c at the root of the repository.'),
      timeout: duration.optional().describe('10m where unset.'),
    }),
  )
  .max(checkLimits.checks)
  .superRefine((list, context) => {
    for (const { message } of checksSchema.safeParse(list.map(toCheck)).error?.issues ?? [])
      context.addIssue({ code: 'custom', message })
  })

function toCheck({ name, run, timeout }: { name: string; run: string; timeout?: string | undefined }): Check {
  return { name, command: run, ...(timeout ? { timeout_seconds: secondsOf(timeout) } : {}) }
}

/** `.corral/environment.yaml`. Unknown fields are refused, so that a typing error is not silently ignored. */
export const environmentFileSchema = z.strictObject({
  version: z.literal(1).describe('The version of this format.'),
  setup: z
    .union([command, z.array(command).min(1).max(50)])
    .optional()
    .describe('Installs what the repository needs; runs under bash -euo pipefail before the agent.'),
  env: z
    .record(variableName, z.union([z.string().max(32_768), z.number(), z.boolean()]))
    .optional()
    .describe('Variables for set-up and the agent.'),
  path: z.array(directory).max(50).optional().describe('Directories of the repository that come first on PATH.'),
  checks: checks.optional().describe('Commands that judge the work after the agent, where the task names none itself.'),
  egress: z
    .strictObject({
      setup: egress.optional().describe(`What set-up may reach; "${packagesGrant}" where unset.`),
      agent: egress.optional().describe('What the agent may reach; nothing where unset.'),
    })
    .optional()
    .describe(`Each host:port, or ${packagesGrant} for the package mirror. All but the mirror has to be granted.`),
})

/** What the file asks for, in one form. */
export interface EnvironmentRequest {
  /** The lines of a bash script. */
  setup?: string
  env: Record<string, string>
  path: string[]
  checks: Check[]
  egress: { setup: string[]; agent: string[] }
}

/** The file's content with its defaults. Pure. */
export function environmentRequest(file: z.infer<typeof environmentFileSchema>): EnvironmentRequest {
  const { setup } = file
  const lines = typeof setup === 'string' ? [setup] : setup
  return {
    ...(lines ? { setup: lines.join('\n') } : {}),
    env: Object.fromEntries(Object.entries(file.env ?? {}).map(([name, value]) => [name, String(value)])),
    path: file.path ?? [],
    checks: (file.checks ?? []).map(toCheck),
    egress: { setup: file.egress?.setup ?? (lines ? [packagesGrant] : []), agent: file.egress?.agent ?? [] },
  }
}

/** What of it an operator has to grant first: everything but the package mirror. */
export function askedEgress({ egress: { setup, agent } }: EnvironmentRequest): string[] {
  return [...new Set([...setup, ...agent].map((rule) => rule.toLowerCase()))].filter((rule) => rule !== packagesGrant)
}

/** The JSON Schema of the file, for editors. */
export function environmentJsonSchema(): Record<string, unknown> {
  return { title: environmentFilePath, ...z.toJSONSchema(environmentFileSchema, { io: 'input' }) }
}

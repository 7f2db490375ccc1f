import { isResourceAmount, leastResources, packagesGrant } from '@corral/resources/task-words'
import * as z from 'zod'
import { type Check, checkLimits, checkSchema, checksSchema } from './check-api.js'
import { egressRuleSchema, taskLimits } from './task-api.js'

/** Toolchains an environment can name. */
export const toolNames = ['node', 'go', 'rust', 'python', 'java', 'uv'] as const
export type ToolName = (typeof toolNames)[number]

/** Neither an argument nor a variable of a process can hold one. */
const withoutNul = (text: string): boolean => !text.includes('\0')
const nulWords = 'must not contain a NUL character'

export const command: z.ZodString = z.string().min(1).max(taskLimits.commandCharacters).refine(withoutNul, nulWords)

export const commands: z.ZodUnion<[typeof command, z.ZodArray<typeof command>]> = z.union([
  command,
  z.array(command).min(1).max(50),
])

const ownVariables = ['PATH', 'HOME', 'REPO', 'SETUP']

export const variableName: z.ZodString = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be the name of a variable')
  .refine((name) => !ownVariables.includes(name) && !name.startsWith('CORRAL_'), {
    message: 'is set by the platform; directories for PATH go into "path"',
  })

export const variables: z.ZodRecord<
  typeof variableName,
  z.ZodUnion<[z.ZodString, z.ZodNumber, z.ZodBoolean]>
> = z.record(variableName, z.union([z.string().max(32_768).refine(withoutNul, nulWords), z.number(), z.boolean()]))

const below = (what: string): z.ZodString =>
  z
    .string()
    .min(1)
    .max(1_000)
    .regex(/^[^:\n]+$/, `must be one ${what}`)
    .refine(withoutNul, nulWords)
    .refine((path) => !path.startsWith('/') && !path.split('/').includes('..'), {
      message: `must be a ${what} of the repository, relative to its root`,
    })
    .refine((path) => !/^~(\/|$)|\$/.test(path), {
      message: `must be a ${what} of the repository: no shell reads it, so that ~ and variables stay as they are`,
    })

export const directory: z.ZodString = below('directory')

export const egress: z.ZodArray<typeof egressRuleSchema> = z.array(egressRuleSchema).max(taskLimits.egressRules)

const secondsOfUnit = { s: 1, m: 60, h: 3600 } as const

const duration = z
  .string()
  .regex(/^[1-9][0-9]{0,5}(s|m|h)$/, 'must be a duration such as 90s, 10m or 1h')
  .refine((text) => !(secondsOf(text) > checkLimits.maxTimeoutSeconds), 'must be 6h at most')

export function secondsOf(text: string): number {
  return Number(text.slice(0, -1)) * secondsOfUnit[text.slice(-1) as keyof typeof secondsOfUnit]
}

const checkEntry = z.strictObject({
  name: checkSchema.shape.name,
  run: checkSchema.shape.command.describe('Runs with /bin/sh -c at the root of the repository.'),
  timeout: duration.optional().describe('10m where unset.'),
})

export const checks: z.ZodArray<typeof checkEntry> = z
  .array(checkEntry)
  .max(checkLimits.checks)
  .superRefine((list, context) => {
    // Times are looked at above.
    const plain = list.map(({ name, run }) => toCheck({ name, run }))
    for (const { message } of checksSchema.safeParse(plain).error?.issues ?? [])
      context.addIssue({ code: 'custom', message })
  })

export function toCheck({ name, run, timeout }: z.infer<typeof checkEntry>): Check {
  return { name, command: run, ...(timeout ? { timeout_seconds: secondsOf(timeout) } : {}) }
}

// YAML reads 3.10 as the number 3.1: only whole numbers may go without quotes.
const version = z.union([z.string(), z.number()]).superRefine((value, context) => {
  const problem =
    typeof value === 'number' && !Number.isInteger(value)
      ? 'must be in quotes: YAML reads 3.10 as 3.1'
      : /^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$/.test(String(value))
        ? undefined
        : 'must be a version such as "22", "1.25" or "3.11.7", not a range'
  if (problem) context.addIssue({ code: 'custom', message: problem })
})

export const tools: z.ZodObject<Record<ToolName, z.ZodOptional<typeof version>>, z.core.$strict> = z.strictObject(
  Object.fromEntries(toolNames.map((name) => [name, version.optional()])) as Record<
    ToolName,
    z.ZodOptional<typeof version>
  >,
)

const ready = z
  .strictObject({ port: z.number().int().min(1).max(65_535) })
  .describe('Ready once something listens on this port of 127.0.0.1.')

const startEntry = z.strictObject({
  run: command.describe('Runs in the background under bash, from set-up to the end of the task.'),
  ready: ready.optional(),
  timeout: duration.optional().describe('How long it may take to be ready; 60s where unset.'),
})

export const start: z.ZodArray<typeof startEntry> = z.array(startEntry).max(20)

const serviceName = z.string().regex(/^[a-z][a-z0-9-]{0,30}$/, 'must be lower-case letters, digits and dashes')

const serviceEntry = z
  .strictObject({
    name: serviceName,
    use: z
      .string()
      .regex(/^postgres(-[0-9]{1,2})?$/, 'must be postgres or postgres-15; give others with "run" and "ready"')
      .optional()
      .describe('A service that is ready-made.'),
    run: command.optional().describe('A command that stays in the foreground.'),
    ready: ready.optional(),
    env: variables.optional(),
    timeout: duration.optional().describe('How long it may take to be ready; 60s where unset.'),
  })
  .superRefine(({ use, run, ready: port }, context) => {
    if ((use === undefined) === (run === undefined))
      context.addIssue({ code: 'custom', message: 'must have either "use" or "run"' })
    if (run !== undefined && port === undefined)
      context.addIssue({ code: 'custom', path: ['ready'], message: 'is required beside "run"' })
  })

export const services: z.ZodArray<typeof serviceEntry> = z
  .array(serviceEntry)
  .max(10)
  .superRefine((list, context) => {
    for (const [index, { name }] of list.entries())
      if (list.findIndex((other) => other.name === name) !== index)
        context.addIssue({ code: 'custom', path: [index, 'name'], message: `two services are named "${name}"` })
  })

export const secretName: z.ZodString = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,62}$/, 'must be the name of a secret: lower-case letters, digits and dashes')

const secretEntry = z.strictObject({
  name: secretName.describe('As `corral secret set` knows it.'),
  env: variableName.optional().describe('The variable set-up finds it in; its name in capitals where unset.'),
  for: z.literal('setup').optional().describe('Set-up alone is given it.'),
})

export const secrets: z.ZodArray<typeof secretEntry> = z.array(secretEntry).max(20)

function amountOf(name: 'cpu' | 'memory' | 'disk') {
  const words = name === 'cpu' ? 'cores such as 2 or "500m"' : 'an amount such as 8Gi'
  return z
    .union([z.string(), z.number()])
    .transform(String)
    .refine((text) => isResourceAmount(name, text), `must be ${words}, at least ${leastResources[name]}`)
}

const resourceFields = z.strictObject({
  cpu: amountOf('cpu').optional().describe('Cores.'),
  memory: amountOf('memory').optional().describe('Of all processes together.'),
  disk: amountOf('disk').optional().describe('Workspace, HOME and /tmp together.'),
})

export const resources: typeof resourceFields = resourceFields

const keyFile = below('file or directory').refine((path) => !path.includes('*'), {
  message: 'must name a file or a directory: patterns are not followed; a directory stands for all that is in it',
})

export const keyFiles: z.ZodArray<typeof directory> = z.array(keyFile).max(100)

const partFields = z.strictObject({
  path: directory.describe('The directory of the part; its commands run there.'),
  setup: commands.optional(),
  update: commands.optional(),
  key: keyFiles.optional(),
  env: variables.optional(),
  checks: checks.optional(),
  tools: tools.optional(),
  start: start.optional(),
  services: services.optional(),
})

export const parts: z.ZodRecord<z.ZodString, typeof partFields> = z.record(
  z.string().regex(/^[a-z][a-z0-9-]{0,30}$/, 'must be lower-case letters, digits and dashes'),
  partFields,
)

/** What the egress of a phase is described as. */
export const egressNote: string = `Each host:port, or ${packagesGrant} for the package mirror. All but the mirror has to be granted.`

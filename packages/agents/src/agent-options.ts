import * as z from 'zod'

/** What `agent` may hold beside its name. Each adapter picks the ones it knows and refuses the others. */
export interface AgentOptions {
  readonly command?: string | undefined
  readonly model?: string | undefined
  readonly effort?: string | undefined
  readonly args?: readonly string[] | undefined
  /** The provider or named endpoint whose model is used. */
  readonly provider?: string | undefined
  readonly [option: string]: unknown
}

/** Text that becomes an argument or an environment variable, neither of which can hold a NUL. */
const plainText = (max: number): z.ZodType<string> =>
  z
    .string()
    .min(1)
    .max(max)
    .refine((text) => !text.includes('\0'), 'must not contain a NUL character')

/** A model's name is an argument: one that begins with a dash would be read as an option. */
export const modelOption: z.ZodType<string> = plainText(200).refine(
  (name) => !name.startsWith('-'),
  'must not begin with a dash',
)
export const commandOption: z.ZodType<string> = plainText(64 * 1024)
export const argsOption: z.ZodType<string[]> = z.array(plainText(8 * 1024)).max(100)
export const providerOption: z.ZodType<string> = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,40}$/, 'must be the name of a provider or endpoint: lower-case letters, digits and dashes')

export const effortOption = (levels: readonly [string, ...string[]]): z.ZodType<string> => z.enum(levels)

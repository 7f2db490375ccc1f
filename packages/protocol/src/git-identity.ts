import * as z from 'zod'

const oneLine = (text: string): boolean => !/[<>\p{Cc}]/u.test(text) && text.trim() !== ''

/** Who a commit names as its author or committer. */
export const gitIdentitySchema = z.strictObject({
  name: z.string().min(1).max(200).refine(oneLine, 'must be one line without angle brackets'),
  email: z
    .string()
    .max(200)
    .regex(/^[^\s<>@]+@[^\s<>@]+$/, 'must be an address such as jane@example.com'),
})
export type GitIdentity = z.infer<typeof gitIdentitySchema>

/** `Jane Doe <jane@example.com>`, as git writes it; undefined for anything else. */
export function parseGitIdentity(text: string): GitIdentity | undefined {
  const [, name = '', email = ''] = /^\s*([^<>]+?)\s*<([^<>]+)>\s*$/.exec(text) ?? []
  const checked = gitIdentitySchema.safeParse({ name, email })
  return checked.success ? checked.data : undefined
}

export function formatGitIdentity({ name, email }: GitIdentity): string {
  return `${name} <${email}>`
}

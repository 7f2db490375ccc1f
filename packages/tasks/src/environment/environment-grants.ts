import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { egressRuleSchema, issueWords, secretName } from '@corral/protocol'
import { isImageName, isResourceAmount, type ResourceName, type SandboxResources } from '@corral/resources'
import * as z from 'zod'
import { isModelKey, platformSecrets } from '../secrets/secret-store.js'
import { TaskError } from '../task-error.js'

/** What an operator lets environment files of a repository open, beside the package mirror. */
export interface EnvironmentGrants {
  list(): Promise<RepositoryGrants[]>
  of(repository: string): Promise<RepositoryGrants>
  /** Safe to repeat. */
  grant(repository: string, more: GrantWords): Promise<RepositoryGrants>
  /** Takes back what was granted; nothing named: everything. */
  revoke(repository: string, gone: GrantWords): Promise<RepositoryGrants>
}

export interface RepositoryGrants {
  /** The address tasks name it by. */
  repository: string
  egress: string[]
  /** Names of secrets that set-up may have. */
  secrets: string[]
  /** Limits its sandboxes may have at most, where those are above the template's. */
  resources?: SandboxResources | undefined
  /** Images its sandboxes may have. */
  images?: string[] | undefined
}

/** What is granted or taken back. */
export interface GrantWords {
  egress: readonly string[]
  secrets: readonly string[]
  resources?: SandboxResources | undefined
  images?: readonly string[] | undefined
}

const grantsSchema = z.object({
  repository: z.string().min(1),
  egress: z.array(egressRuleSchema),
  secrets: z.array(secretName).default([]),
  resources: z
    .object({ cpu: z.string().exactOptional(), memory: z.string().exactOptional(), disk: z.string().exactOptional() })
    .exactOptional(),
  images: z.array(z.string()).exactOptional(),
})
const fileSchema = z.object({ grants: z.array(grantsSchema) })

/** One JSON file, read at every look: another process may have changed it. */
export function fileEnvironmentGrants(path: string): EnvironmentGrants {
  const list = async (): Promise<RepositoryGrants[]> => {
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
      return undefined
    })
    if (text === undefined) return []
    const read = fileSchema.safeParse(parsed(text))
    if (read.success) return read.data.grants
    throw new TaskError('Invalid', `${path}: ${issueWords(read.error.issues, 'the file').slice(0, 3).join('; ')}`, {
      hint: 'Correct the file, or remove it and grant again with `corral env grant`.',
    })
  }
  const of = async (repository: string): Promise<RepositoryGrants> =>
    (await list()).find((each) => each.repository === repository) ?? { repository, egress: [], secrets: [] }
  const write = async (changed: RepositoryGrants): Promise<RepositoryGrants> => {
    const others = (await list()).filter(({ repository }) => repository !== changed.repository)
    const isEmpty = isNothing(changed)
    const half = `${path}.${process.pid}.new`
    await mkdir(dirname(path), { recursive: true })
    await writeFile(half, `${JSON.stringify({ grants: isEmpty ? others : [...others, changed] }, null, 2)}\n`, {
      mode: 0o600,
    })
    await rename(half, path)
    return changed
  }
  return {
    list,
    of,
    async grant(repository, more) {
      checkWords(more)
      const { egress, secrets, resources, images = [] } = await of(repository)
      const allImages = [...new Set([...images, ...(more.images ?? [])])]
      const amounts = { ...resources, ...more.resources }
      return write({
        repository,
        egress: [...new Set([...egress, ...more.egress.map((rule) => rule.toLowerCase())])],
        secrets: [...new Set([...secrets, ...more.secrets])],
        ...(Object.keys(amounts).length > 0 ? { resources: amounts } : {}),
        ...(allImages.length > 0 ? { images: allImages } : {}),
      })
    },
    async revoke(repository, gone) {
      const isAll = isNothing(gone)
      const rules = new Set(gone.egress.map((rule) => rule.toLowerCase()))
      const { egress, secrets, resources = {}, images = [] } = await of(repository)
      const keptImages = images.filter((name) => !isAll && !gone.images?.includes(name))
      const kept = Object.entries(resources).filter(([name]) => !isAll && !(name in (gone.resources ?? {})))
      return write({
        repository,
        egress: isAll ? [] : egress.filter((rule) => !rules.has(rule)),
        secrets: isAll ? [] : secrets.filter((name) => !gone.secrets.includes(name)),
        ...(kept.length > 0 ? { resources: Object.fromEntries(kept) } : {}),
        ...(keptImages.length > 0 ? { images: keptImages } : {}),
      })
    },
  }
}

function isNothing({ egress, secrets, resources = {}, images = [] }: GrantWords): boolean {
  return egress.length + secrets.length + Object.keys(resources).length + images.length === 0
}

function checkWords({ egress, secrets, resources = {}, images = [] }: GrantWords): void {
  const image = images.find((name) => !isImageName(name))
  if (image !== undefined)
    throw new TaskError('Invalid', `"${image}" is no name of an image`, { hint: 'Such as debian:12.' })
  const amount = Object.entries(resources).find(([name, text]) => !isResourceAmount(name as ResourceName, text))
  if (amount)
    throw new TaskError('Invalid', `"${amount[1]}" is no amount of ${amount[0]}`, {
      hint: 'Such as 8Gi, or 4 for cores.',
    })
  const wrong = egress.find((rule) => !egressRuleSchema.safeParse(rule).success)
  if (wrong !== undefined)
    throw new TaskError('Invalid', `"${wrong}" is not host:port`, { hint: 'Such as files.example.com:443.' })
  const badName = secrets.find((name) => !secretName.safeParse(name).success)
  if (badName !== undefined)
    throw new TaskError('Invalid', `"${badName}" is not the name of a secret`, {
      hint: 'Names are lower-case letters, digits and dashes; `corral secret list` has them.',
    })
  const kept = secrets.find(isKeptFromSandboxes)
  if (kept !== undefined)
    throw new TaskError('Invalid', `the secret "${kept}" is for the platform alone`, {
      hint: 'Keep what set-up needs under another name: corral secret set NAME',
    })
}

const isKeptFromSandboxes = (name: string): boolean => platformSecrets.has(name) || isModelKey(name)

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The schema says what is wrong with it.
    return undefined
  }
}

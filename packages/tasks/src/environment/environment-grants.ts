import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { endpointSecret, providers } from '@corral/agents'
import { egressRuleSchema, issueWords, secretName } from '@corral/protocol'
import * as z from 'zod'
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
}

/** What is granted or taken back. */
export interface GrantWords {
  egress: readonly string[]
  secrets: readonly string[]
}

const grantsSchema = z.object({
  repository: z.string().min(1),
  egress: z.array(egressRuleSchema),
  secrets: z.array(secretName).default([]),
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
    const isEmpty = changed.egress.length === 0 && changed.secrets.length === 0
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
      const { egress, secrets } = await of(repository)
      return write({
        repository,
        egress: [...new Set([...egress, ...more.egress.map((rule) => rule.toLowerCase())])],
        secrets: [...new Set([...secrets, ...more.secrets])],
      })
    },
    async revoke(repository, gone) {
      const isAll = gone.egress.length === 0 && gone.secrets.length === 0
      const rules = new Set(gone.egress.map((rule) => rule.toLowerCase()))
      const { egress, secrets } = await of(repository)
      return write({
        repository,
        egress: isAll ? [] : egress.filter((rule) => !rules.has(rule)),
        secrets: isAll ? [] : secrets.filter((name) => !gone.secrets.includes(name)),
      })
    },
  }
}

/** The platform's own, and keys of models, which only the broker may use. */
const ownSecrets = ['broker-token-secret', 'service-account-key', 'package-links']

function checkWords({ egress, secrets }: GrantWords): void {
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

function isKeptFromSandboxes(name: string): boolean {
  const ofModels = [...providers.values()].map(({ secret }) => secret)
  return ownSecrets.includes(name) || ofModels.includes(name) || name.startsWith(endpointSecret(''))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The schema says what is wrong with it.
    return undefined
  }
}

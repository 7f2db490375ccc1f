import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { egressRuleSchema, issueWords } from '@corral/protocol'
import * as z from 'zod'
import { TaskError } from '../task-error.js'

/** What an operator lets environment files of a repository open, beside the package mirror. */
export interface EnvironmentGrants {
  list(): Promise<RepositoryGrants[]>
  egressOf(repository: string): Promise<string[]>
  /** Safe to repeat. */
  grant(repository: string, rules: readonly string[]): Promise<RepositoryGrants>
  /** Takes back what was granted; no rules: everything. */
  revoke(repository: string, rules: readonly string[]): Promise<RepositoryGrants>
}

export interface RepositoryGrants {
  /** The address tasks name it by. */
  repository: string
  egress: string[]
}

const grantsSchema = z.object({ repository: z.string().min(1), egress: z.array(egressRuleSchema) })
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
  const egressOf = async (repository: string): Promise<string[]> =>
    (await list()).find((each) => each.repository === repository)?.egress ?? []
  const write = async (changed: RepositoryGrants): Promise<RepositoryGrants> => {
    const others = (await list()).filter(({ repository }) => repository !== changed.repository)
    const grants = changed.egress.length > 0 ? [...others, changed] : others
    const half = `${path}.${process.pid}.new`
    await mkdir(dirname(path), { recursive: true })
    await writeFile(half, `${JSON.stringify({ grants }, null, 2)}\n`, { mode: 0o600 })
    await rename(half, path)
    return changed
  }
  return {
    list,
    egressOf,
    async grant(repository, rules) {
      const wrong = rules.find((rule) => !egressRuleSchema.safeParse(rule).success)
      if (wrong !== undefined)
        throw new TaskError('Invalid', `"${wrong}" is not host:port`, { hint: 'Such as files.example.com:443.' })
      const egress = [...new Set([...(await egressOf(repository)), ...rules.map((rule) => rule.toLowerCase())])]
      return write({ repository, egress })
    },
    async revoke(repository, rules) {
      const gone = new Set(rules.map((rule) => rule.toLowerCase()))
      const egress = (await egressOf(repository)).filter((rule) => gone.size > 0 && !gone.has(rule))
      return write({ repository, egress })
    },
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The schema says what is wrong with it.
    return undefined
  }
}

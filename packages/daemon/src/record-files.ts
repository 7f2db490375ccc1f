import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ProcessExitRecord, type ProcessRecord, processExitSchema, processRecordSchema } from '@corral/protocol'

/** What is written down before a process starts. Its environment is not: it may hold tokens. */
export type ProcessMeta = Pick<ProcessRecord, 'id' | 'argv' | 'cwd' | 'tty' | 'stdin' | 'started_at'>

const metaSchema = processRecordSchema.pick({
  id: true,
  argv: true,
  cwd: true,
  tty: true,
  stdin: true,
  started_at: true,
})

/** The end of a process as the daemon shows it, fixed once: the exit and the length of the output. */
export interface ProcessFinal {
  readonly exit: ProcessExitRecord
  readonly output_bytes: number
}

function parseFinal(value: unknown): ProcessFinal {
  const { exit, output_bytes } = value as { exit?: unknown; output_bytes?: unknown }
  if (typeof output_bytes !== 'number' || !Number.isSafeInteger(output_bytes)) throw new TypeError('no length')
  return { exit: processExitSchema.parse(exit), output_bytes }
}

export async function writeMeta(directory: string, meta: ProcessMeta): Promise<void> {
  await writeAtomically(join(directory, 'meta.json'), meta)
}

export async function readMeta(directory: string): Promise<ProcessMeta | undefined> {
  return parse(metaSchema.parse, await readIfPresent(join(directory, 'meta.json')))
}

export async function writeFinal(directory: string, final: ProcessFinal): Promise<void> {
  await writeAtomically(join(directory, 'final.json'), final)
}

export async function readFinal(directory: string): Promise<ProcessFinal | undefined> {
  return parse(parseFinal, await readIfPresent(join(directory, 'final.json')))
}

/** A process id from one of the wrapper's files. */
export async function readPid(directory: string, name: 'pid' | 'wrapper' | 'keeper'): Promise<number | undefined> {
  const text = await readIfPresent(join(directory, name))
  return text && /^\d+\n$/.test(text) ? Number(text) : undefined
}

export async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch {
    // Absent is an answer here; anything else shows up as a process that never ends well.
    return undefined
  }
}

async function writeAtomically(path: string, value: unknown): Promise<void> {
  await writeFile(`${path}.new`, JSON.stringify(value), { mode: 0o600 })
  await rename(`${path}.new`, path)
}

function parse<T>(read: (value: unknown) => T, text: string | undefined): T | undefined {
  if (text === undefined) return undefined
  try {
    return read(JSON.parse(text))
  } catch {
    // A damaged record is treated as none.
    return undefined
  }
}

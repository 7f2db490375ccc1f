import { spawn } from 'node:child_process'
import { SnapshotError, type SnapshotErrorCode, type SnapshotInfo } from '@corral/ports'

export interface InspectInput {
  /** The compiled supervisor, whose `seal` does the work. */
  program: string
  ownerUid: number
  trees: readonly { source: string; path: string }[]
  secrets: readonly string[]
  signal?: AbortSignal | undefined
}

export type Inspection = Pick<SnapshotInfo, 'files' | 'bytes' | 'stripped'>

/**
 * Looks through trees without writers and takes away what a snapshot does not keep, see `native/seal.c`.
 * Rejects with a `SnapshotError` and changes nothing where something must not be in a snapshot at all.
 */
export async function inspectTrees({ program, ownerUid, trees, secrets, signal }: InspectInput): Promise<Inspection> {
  const args = ['seal', String(ownerUid), ...trees.flatMap(({ source, path }) => [source, path])]
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], env: {}, ...(signal ? { signal } : {}) })
  const [output, problem] = [collect(child.stdout), collect(child.stderr)]
  child.stdin.on('error', () => {
    // It ended before it had read everything; how it ended says why.
  })
  // By standard input: arguments show in the host's process list.
  child.stdin.end(secrets.map((value) => `${value}\0`).join(''))
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once('error', (cause) => reject(new SnapshotError('Unsupported', `cannot seal: ${cause.message}`, { cause })))
    child.once('close', resolve)
  })
  if (status !== 0) throw refusal((await problem).trim(), status)
  const counts = new Map(
    (await output)
      .trim()
      .split(' ')
      .map((pair) => pair.split('=') as [string, string]),
  )
  const count = (key: string): number => Number(counts.get(key) ?? 0)
  return {
    files: count('files'),
    bytes: count('bytes'),
    stripped: {
      setuid: count('setuid'),
      devices: count('devices'),
      sockets: count('sockets'),
      attributes: count('attributes'),
    },
  }
}

const refusals: Partial<Record<string, string>> = {
  ForeignOwner: 'does not belong to the pod; every file of a snapshot must',
  SecretFound: 'holds a secret of the set-up; remove it there before the set-up ends',
  NotMovable: 'is on another file system',
}

function refusal(text: string, status: number | null): SnapshotError {
  const [code = '', ...rest] = text.split(' ')
  const path = rest.join(' ')
  const sentence = refusals[code]
  if (sentence !== undefined) return new SnapshotError(code as SnapshotErrorCode, `${path} ${sentence}`)
  return new SnapshotError('Failed', path || `the program that seals ended with ${status}`)
}

async function collect(stream: AsyncIterable<Buffer>): Promise<string> {
  let text = ''
  for await (const chunk of stream) if (text.length < 65_536) text += chunk.toString()
  return text
}

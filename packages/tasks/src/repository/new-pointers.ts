import type { ConfinedGit } from '../git/confined-git.js'
import { type LfsPointer, parsePointer, pointerBytes } from './lfs-pointer.js'
import type { AcceptRequest } from './repository.js'

/** Pointers of Git LFS a result may have that are new. */
const maxPointers = 10_000

/** The pointers of Git LFS among the blobs that a result adds to its base, in any of its commits. */
export async function newPointers(
  git: ConfinedGit,
  { baseCommit, claimedCommit, signal }: Pick<AcceptRequest, 'baseCommit' | 'claimedCommit' | 'signal'>,
  timeoutMs: number,
): Promise<LfsPointer[]> {
  const args = [
    'rev-list',
    '--objects',
    '--no-object-names',
    '--filter=blob:limit=1k',
    claimedCommit,
    '--not',
    baseCommit,
  ]
  const { stdout } = await git.run(args, { signal, timeoutMs, maxOutputBytes: 256 * 1024 * 1024 })
  const kinds = await ask(git, ['--batch-check'], stdout, { signal, timeoutMs })
  const small = kinds
    .toString('latin1')
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([, type, size]) => type === 'blob' && pointerBytes.mayBe(Number(size)))
    .map(([oid]) => oid!)
    .slice(0, maxPointers)
  if (small.length === 0) return []
  const contents = await ask(git, ['--batch'], `${small.join('\n')}\n`, { signal, timeoutMs })
  const pointers = new Map<string, LfsPointer>()
  for (let position = 0; position < contents.length; ) {
    const end = contents.indexOf(10, position)
    const size = Number(contents.toString('latin1', position, end).split(' ')[2] ?? 0)
    const pointer = parsePointer(contents.toString('latin1', end + 1, end + 1 + size))
    if (pointer) pointers.set(pointer.oid, pointer)
    position = end + 2 + size
  }
  return [...pointers.values()]
}

async function ask(
  git: ConfinedGit,
  mode: readonly string[],
  names: string,
  options: { signal: AbortSignal; timeoutMs: number },
): Promise<Buffer> {
  const running = git.start(['cat-file', ...mode], options)
  try {
    running.stdin.end(names)
    const chunks: Buffer[] = []
    for await (const chunk of running.stdout) chunks.push(chunk as Buffer)
    await running.ended
    return Buffer.concat(chunks)
  } finally {
    await running.close()
  }
}

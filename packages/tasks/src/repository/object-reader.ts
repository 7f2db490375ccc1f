import type { GitConversation } from '../git/confined-git.js'

export interface TreeEntry {
  name: string
  kind: 'tree' | 'file' | 'submodule'
  /** Mode and object: two entries with the same one are the same. */
  identity: string
  oid: string
}

/** Reads trees of a repository one by one through `git cat-file --batch`, which it closes, none larger than `maxTreeBytes`. */
export class ObjectReader {
  readonly #git: GitConversation
  readonly #chunks: AsyncIterator<Buffer>
  readonly #maxTreeBytes: number
  #pending: Buffer = Buffer.alloc(0)

  constructor(git: GitConversation, options: { maxTreeBytes: number }) {
    this.#git = git
    this.#chunks = this.#git.stdout[Symbol.asyncIterator]()
    this.#maxTreeBytes = options.maxTreeBytes
  }

  /** The entries of a tree or of a commit's tree, or a sentence on why it is not taken. */
  async tree(name: string): Promise<TreeEntry[] | string> {
    this.#git.stdin.write(`${name}\n`)
    const [oid = '', type, size] = (await this.#line()).split(' ')
    if (type !== 'tree') return `${name} is ${type ?? 'missing'} where a directory belongs`
    if (Number(size) > this.#maxTreeBytes) return `a directory takes ${size} bytes, more than ${this.#maxTreeBytes}`
    const content = await this.#take(Number(size) + 1)
    return parseTree(content.subarray(0, -1), oid.length / 2)
  }

  close(): Promise<void> {
    return this.#git.close()
  }

  async #line(): Promise<string> {
    for (;;) {
      const end = this.#pending.indexOf(10)
      if (end >= 0) return (await this.#take(end + 1)).toString('latin1', 0, end)
      this.#pending = Buffer.concat([this.#pending, await this.#next()])
    }
  }

  async #take(length: number): Promise<Buffer> {
    const parts = [this.#pending]
    for (let have = this.#pending.length; have < length; have += parts.at(-1)!.length) parts.push(await this.#next())
    const all = parts.length === 1 ? this.#pending : Buffer.concat(parts)
    this.#pending = all.subarray(length)
    return all.subarray(0, length)
  }

  /** The next chunk of the answer, or git's own failure. */
  async #next(): Promise<Buffer> {
    const { value, done } = await this.#chunks.next()
    if (!done) return value
    await this.#git.ended
    throw new Error('git cat-file ended before it answered')
  }
}

/** A tree object: `mode SP name NUL id`, again and again. */
function parseTree(content: Buffer, oidBytes: number): TreeEntry[] | string {
  const entries: TreeEntry[] = []
  for (let position = 0; position < content.length; ) {
    const space = content.indexOf(0x20, position)
    const end = content.indexOf(0, space)
    if (space < 0 || end < 0 || end + 1 + oidBytes > content.length) return 'a directory is damaged'
    const mode = content.toString('latin1', position, space)
    const oid = content.toString('hex', end + 1, end + 1 + oidBytes)
    const kind = mode === '40000' ? 'tree' : mode === '160000' ? 'submodule' : 'file'
    // Bytes of a name are kept apart by latin1: names need not be UTF-8.
    entries.push({ name: content.toString('latin1', space + 1, end), kind, oid, identity: `${mode} ${oid}` })
    position = end + 1 + oidBytes
  }
  return entries
}

import { stat } from 'node:fs/promises'

/** The times of directories do not count: things come and go in them that nothing was read of. */
async function stampOf(path: string): Promise<{ text: string; changedNs: bigint; owner: number | undefined }> {
  const found = await stat(path, { bigint: true }).catch(() => undefined)
  if (!found) return { text: 'none', changedNs: 0n, owner: undefined }
  const { ino, uid, mode, size, mtimeNs, ctimeNs } = found
  const isDirectory = found.isDirectory()
  const text = [ino, uid, mode, ...(isDirectory ? [] : [size, mtimeNs, ctimeNs])].join(' ')
  return { text, changedNs: isDirectory ? 0n : ctimeNs, owner: Number(uid) }
}

const maxKnown = 500

/** What was read of files on this machine, kept until one of them is another one, has another owner or was written. */
export class FileMemory<T> {
  readonly #known = new Map<string, { stamp: string; value: T }>()
  readonly #nowMs: () => number

  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs
  }

  /** `owner`: nothing is kept where one of the files belongs to another user. */
  async get(paths: readonly string[], { owner }: { owner?: number | undefined }, read: () => Promise<T>): Promise<T> {
    const stamps = await Promise.all(paths.map(stampOf))
    const key = paths.join('\0')
    const stamp = stamps.map(({ text }) => text).join('\0')
    const known = this.#known.get(key)
    if (known?.stamp === stamp) return known.value
    const value = await read()
    const isOthers = owner !== undefined && stamps.some((each) => each.owner !== undefined && each.owner !== owner)
    // A file of this very moment may be written again without another time: it is read again.
    const oldNs = BigInt(this.#nowMs()) * 1_000_000n - 1_000_000_000n
    if (isOthers || stamps.some(({ changedNs }) => changedNs > oldNs)) {
      this.#known.delete(key)
      return value
    }
    if (this.#known.size >= maxKnown) this.#known.clear()
    this.#known.set(key, { stamp, value })
    return value
  }
}

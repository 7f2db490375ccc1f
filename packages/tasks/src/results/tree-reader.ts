import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Confine } from '../git/confine.js'
import { createConfinedGit } from '../git/confined-git.js'
import { quarantineLimits, quarantineOf } from '../repository/quarantine.js'

export interface TreeFile {
  sizeBytes: number
  /** The caller reads it to its end or calls `return`. */
  content: AsyncIterable<Uint8Array>
}

/** Files of a task's commits, without a work tree. */
export interface TreeReader {
  /** Undefined where the commit has no file of that path, or is no longer kept. */
  find(request: {
    taskDirectory: string
    commit: string
    path: string
    signal: AbortSignal
  }): Promise<TreeFile | undefined>
}

const timeoutMs = 60_000

/** Reads from the quarantine in which a task's result was accepted; it holds the result and borrows the base. */
export function quarantineTreeReader(options: { confine?: Confine | undefined; path?: string | undefined }): TreeReader {
  const { confine = ({ argv }) => argv } = options
  return {
    async find({ taskDirectory, commit, path, signal }) {
      const directory = quarantineOf(taskDirectory)
      const borrowed = await readFile(join(directory, 'objects/info/alternates'), 'utf8').catch(() => undefined)
      if (borrowed === undefined) return undefined
      const readable = borrowed.split('\n').flatMap((line) => (line === '' ? [] : [dirname(line)]))
      const limits = { ...quarantineLimits, fileBytes: quarantineLimits.bundleBytes }
      const git = createConfinedGit({ directory, readable, limits, confine, path: options.path })
      const found = await git
        .run(['--literal-pathspecs', 'ls-tree', '-z', '-l', commit, '--', path], { signal, timeoutMs })
        .catch(() => undefined) // a commit that is no longer kept
      const [, type, object, size] = /^\d+ (\w+) ([0-9a-f]+)\s+(\d+|-)\t/.exec(found?.stdout ?? '') ?? []
      if (type !== 'blob' || object === undefined) return undefined
      return {
        sizeBytes: Number(size),
        content: (async function* () {
          const reading = git.start(['cat-file', 'blob', object], { signal, timeoutMs })
          try {
            reading.stdin.end()
            for await (const chunk of reading.stdout) yield chunk as Uint8Array
            await reading.ended
          } finally {
            await reading.close()
          }
        })(),
      }
    },
  }
}

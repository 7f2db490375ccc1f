import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bubblewrapIsolation } from '@corral/node'
import { isFullSize } from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type Confine,
  createGit,
  createRepository,
  type Repository,
  writeGlobalConfig,
} from '../../packages/tasks/src/index.js'
import { type QuarantineLimits, quarantineLimits } from '../../packages/tasks/src/repository/quarantine.js'
import { bundle, type CraftedObject, commit, idOf, repeating, tree, whole } from './crafted-pack.js'

const unconfined: Confine = ({ argv }) => argv
const inNamespaces: Confine = (command) =>
  bubblewrapIsolation({ dataDir: directory }).confine?.(command) ?? command.argv

const mebibyte = 1024 * 1024
const resultRef = 'refs/heads/corral-result'
const small: QuarantineLimits = {
  ...quarantineLimits,
  objectBytes: 24 * mebibyte,
  changedBytes: 40 * mebibyte,
  changedFiles: 1_000,
  historyEntries: 20_000,
  historyBytes: 80 * mebibyte,
  pathBytes: 300,
  pathDepth: 20,
  directoryBytes: 64 * 1024,
}

let directory: string
let url: string
let base: string

const signal = new AbortController().signal
const git = (...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@localhost', ...args], { cwd: url, encoding: 'utf8' })

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-bundles-'))
  url = join(directory, 'origin')
  mkdirSync(url)
  git('init', '-q', '-b', 'main')
  git('commit', '-q', '--allow-empty', '-m', 'base')
  base = git('rev-parse', 'HEAD').trim()
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** A commit on the base whose tree has these entries. */
function result(
  entries: Parameters<typeof tree>[0],
  objects: readonly CraftedObject[],
  refs = [resultRef],
): { bytes: Buffer; commit: string } {
  const root = whole('tree', tree(entries))
  const top = whole('commit', commit(root.id, base, 'work'))
  const named = refs.map((name) => ({ name, id: top.id }))
  return { commit: top.id, bytes: bundle({ prerequisite: base, refs: named, objects: [...objects, root, top] }) }
}

/** A blob of `bytes` as a delta that costs a few bytes per 16 MiB. */
function swollen(bytes: number): { objects: CraftedObject[]; id: string } {
  const seed = Buffer.alloc(Math.min(bytes, 16 * mebibyte - 1))
  const id = createHash('sha1').update(`blob ${bytes}\0`)
  for (let left = bytes; left > 0; left -= seed.length) id.update(seed.subarray(0, Math.min(left, seed.length)))
  const blob = whole('blob', seed)
  const digest = id.digest('hex')
  return { id: digest, objects: [blob, repeating(blob.id, seed.length, bytes, digest)] }
}

/** `levels` directories inside each other, each with ten names for the next: ten times the files per level. */
function nested(levels: number): { objects: CraftedObject[]; id: string } {
  const leaf = whole('blob', Buffer.from('x'))
  const objects = [leaf]
  let below = { mode: '100644', id: leaf.id }
  for (let level = 0; level < levels; level++) {
    const entries = Array.from({ length: 10 }, (_, i) => ({ ...below, name: String(i) }))
    const made = whole('tree', tree(entries))
    objects.push(made)
    below = { mode: '40000', id: made.id }
  }
  return { objects, id: below.id }
}

function chain(depth: number, name: string): { objects: CraftedObject[]; id: string } {
  const leaf = whole('blob', Buffer.from('x'))
  const objects = [leaf]
  let below = { mode: '100644', id: leaf.id }
  for (let level = 0; level < depth; level++) {
    const made = whole('tree', tree([{ ...below, name }]))
    objects.push(made)
    below = { mode: '40000', id: made.id }
  }
  return { objects, id: below.id }
}

/** Two commits: the first has these entries, the second takes them back, so that nothing differs in the end. */
function takenBack(entries: Parameters<typeof tree>[0], objects: readonly CraftedObject[]): ReturnType<typeof result> {
  const [root, empty] = [whole('tree', tree(entries)), whole('tree', Buffer.alloc(0))]
  const first = whole('commit', commit(root.id, base, 'brings it'))
  const top = whole('commit', commit(empty.id, first.id, 'takes it back'))
  const all = unique([...objects, root, empty, first, top])
  return {
    commit: top.id,
    bytes: bundle({ prerequisite: base, refs: [{ name: resultRef, id: top.id }], objects: all }),
  }
}

const file = (id: string, name = 'f'): { mode: string; name: string; id: string } => ({ mode: '100644', name, id })
const folder = (id: string, name = 'd'): { mode: string; name: string; id: string } => ({ mode: '40000', name, id })

function wide(count: number): { objects: CraftedObject[]; id: string } {
  const leaf = whole('blob', Buffer.from('x'))
  const names = Array.from({ length: count }, (_, i) => `file-${String(i).padStart(6, '0')}-${'n'.repeat(80)}`)
  const made = whole('tree', tree(names.map((name) => file(leaf.id, name))))
  return { objects: [leaf, made], id: made.id }
}

const attacks: {
  what: string
  attack: () => ReturnType<typeof result>
  code: 'ResultTooLarge' | 'ResultRejected'
  says: RegExp
  /** The same with just less of it, which is taken. */
  control?: () => ReturnType<typeof result>
}[] = [
  {
    what: 'a delta of a few bytes that unpacks to 2 GiB',
    attack: () => result([file('1'.repeat(40))], [whole('blob', Buffer.alloc(16 * mebibyte - 1)), bomb()]),
    code: 'ResultTooLarge',
    says: /objectBytes 25165824/,
    control: () => {
      const blob = swollen(23 * mebibyte)
      return result([file(blob.id)], blob.objects)
    },
  },
  {
    what: 'many files that are large together',
    attack: () => {
      const blobs = [20, 21].map((size) => swollen(size * mebibyte))
      return result(
        blobs.map(({ id }, i) => file(id, `f${i}`)),
        unique(blobs.flatMap(({ objects }) => objects)),
      )
    },
    code: 'ResultTooLarge',
    says: /changed files are 42991616 bytes \(changedBytes 41943040\)/,
    control: () => {
      const blobs = [18, 21].map((size) => swollen(size * mebibyte))
      return result(
        blobs.map(({ id }, i) => file(id, `f${i}`)),
        unique(blobs.flatMap(({ objects }) => objects)),
      )
    },
  },
  {
    what: 'directories that contain each other into a billion files',
    attack: () => {
      const bombed = nested(9)
      return result([folder(bombed.id)], bombed.objects)
    },
    code: 'ResultTooLarge',
    says: /too many files changed \(changedFiles 1000\)/,
    control: () => {
      const fits = nested(3)
      return result([folder(fits.id)], fits.objects)
    },
  },
  {
    what: 'directories that contain each other, in a commit that the next one takes back',
    attack: () => {
      const bombed = nested(9)
      return takenBack([folder(bombed.id)], bombed.objects)
    },
    code: 'ResultTooLarge',
    says: /too many files changed \(changedFiles 1000\)/,
    control: () => {
      const fits = nested(2)
      return takenBack([folder(fits.id)], fits.objects)
    },
  },
  {
    what: 'many large files in a commit that the next one takes back',
    attack: () => {
      const blobs = [18, 20, 21, 22].map((size) => swollen(size * mebibyte))
      return takenBack(
        blobs.map(({ id }, i) => file(id, `f${i}`)),
        blobs.flatMap(({ objects }) => objects),
      )
    },
    code: 'ResultTooLarge',
    says: /the files of its commits are 84934656 bytes \(historyBytes 83886080\)/,
    control: () => {
      const blobs = [18, 20, 21].map((size) => swollen(size * mebibyte))
      return takenBack(
        blobs.map(({ id }, i) => file(id, `f${i}`)),
        blobs.flatMap(({ objects }) => objects),
      )
    },
  },
  {
    what: 'commits that each change one name of a long directory',
    attack: () => {
      const leaves = Array.from({ length: 40 }, (_, i) => whole('blob', Buffer.from(String(i))))
      const names = Array.from({ length: 400 }, (_, i) => `n${String(i).padStart(4, '0')}`)
      const objects: CraftedObject[] = [...leaves]
      let parent = base
      for (const leaf of leaves) {
        const root = whole('tree', tree(names.map((name, i) => file(i === 0 ? leaf.id : leaves[0]!.id, name))))
        const made = whole('commit', commit(root.id, parent, 'one more'))
        objects.push(root, made)
        parent = made.id
      }
      const refs = [{ name: resultRef, id: parent }]
      return { commit: parent, bytes: bundle({ prerequisite: base, refs, objects: unique(objects) }) }
    },
    code: 'ResultTooLarge',
    says: /too many directories to compare \(historyEntries 20000\)/,
  },
  {
    what: 'empty directories that contain each other',
    attack: () => {
      const empty = whole('tree', Buffer.alloc(0))
      const objects = [empty]
      let below = empty.id
      for (let level = 0; level < 9; level++) {
        const made = whole('tree', tree(Array.from({ length: 10 }, (_, i) => folder(below, String(i)))))
        objects.push(made)
        below = made.id
      }
      return result([folder(below)], objects)
    },
    code: 'ResultTooLarge',
    says: /changedFiles 1000/,
  },
  {
    what: 'directories too deep inside each other',
    attack: () => {
      const deep = chain(21, 'd')
      return result([folder(deep.id)], deep.objects)
    },
    code: 'ResultTooLarge',
    says: /pathDepth 20/,
    control: () => {
      const deep = chain(20, 'd')
      return result([folder(deep.id)], deep.objects)
    },
  },
  {
    what: 'a path that is too long',
    attack: () => {
      const long = chain(2, 'p'.repeat(150))
      return result([folder(long.id)], long.objects)
    },
    code: 'ResultTooLarge',
    says: /a path is too long \(pathBytes 300\)/,
    control: () => {
      const long = chain(2, 'p'.repeat(140))
      return result([folder(long.id)], long.objects)
    },
  },
  {
    what: 'one directory with too many names',
    attack: () => {
      const many = wide(600)
      return result([folder(many.id)], many.objects)
    },
    code: 'ResultRejected',
    says: /a directory takes \d+ bytes, more than 65536/,
    control: () => {
      const many = wide(500)
      return result([folder(many.id)], many.objects)
    },
  },
  {
    what: 'a second ref beside the result',
    attack: () => {
      const blob = whole('blob', Buffer.from('x'))
      return result([file(blob.id)], [blob], [resultRef, 'refs/heads/main'])
    },
    code: 'ResultRejected',
    says: /carries other refs than the result: refs\/heads\/corral-result, refs\/heads\/main/,
  },
  {
    what: 'another ref instead of the result',
    attack: () => {
      const blob = whole('blob', Buffer.from('x'))
      return result([file(blob.id)], [blob], ['refs/heads/main'])
    },
    code: 'ResultRejected',
    says: /carries other refs than the result: refs\/heads\/main/,
  },
  {
    what: 'a file that is not in the bundle',
    attack: () => result([file(idOf('blob', Buffer.from('left out')))], []),
    code: 'ResultRejected',
    says: /missing blob|Could not read|missing/i,
  },
  ...['.git', '.GIT', 'git~1', '.g\u200cit', '..', '.'].map((name) => ({
    what: `a directory named ${JSON.stringify(name)}`,
    attack: () => {
      const blob = whole('blob', Buffer.from('x'))
      const inner = whole('tree', tree([file(blob.id, 'config')]))
      return result([folder(inner.id, name)], [blob, inner])
    },
    code: 'ResultRejected' as const,
    says: /fsck error|hasDot/i,
    control: () => {
      const blob = whole('blob', Buffer.from('x'))
      const inner = whole('tree', tree([file(blob.id, 'config')]))
      return result([folder(inner.id, 'git')], [blob, inner])
    },
  })),
]

/** The delta says two gibibytes; its id need not be right, since it is refused before it is known. */
function bomb(): CraftedObject {
  const seed = Buffer.alloc(16 * mebibyte - 1)
  return repeating(idOf('blob', seed), seed.length, 2048 * mebibyte, '1'.repeat(40))
}

function unique(objects: readonly CraftedObject[]): CraftedObject[] {
  return [...new Map(objects.map((object) => [object.id, object])).values()]
}

describe.each(confinements())('what a sandbox sends as its result, read by git $name', ({ confine, rows }) => {
  const open = async (limits: Partial<QuarantineLimits>): Promise<Repository> => {
    const globalConfig = await writeGlobalConfig(join(directory, 'config'), process.env)
    const mirrorsDirectory = join(directory, 'mirrors')
    return createRepository({
      git: createGit({ globalConfig, env: process.env }),
      mirrorsDirectory,
      confine,
      limits,
      path: process.env.PATH,
    })
  }
  const accept = async (crafted: ReturnType<typeof result>, limits: Partial<QuarantineLimits> = small) => {
    const repository = await open(limits)
    const taskDirectory = mkdtempSync(join(directory, 'task-'))
    await repository.prepare({ url, taskDirectory, signal })
    const bundlePath = join(taskDirectory, 'out.bundle')
    writeFileSync(bundlePath, crafted.bytes)
    return repository.accept({
      url,
      taskDirectory,
      bundlePath,
      baseCommit: base,
      claimedCommit: crafted.commit,
      signal,
    })
  }

  it.each(rows)('$what is refused, and says by which rule', async ({ attack, code, says }) => {
    const crafted = attack()
    expect(crafted.bytes.length).toBeLessThan(mebibyte)
    await expect(accept(crafted)).rejects.toMatchObject({ code, message: expect.stringMatching(says) })
  })

  it.each(rows.filter(({ control }) => control))('control: less of "$what" is taken', async ({ control }) => {
    const crafted = control!()
    await expect(accept(crafted)).resolves.toMatchObject({ commit: crafted.commit })
  })

  it('a bundle larger than allowed is refused, one of just that size is taken', async () => {
    const blob = whole('blob', Buffer.from('x'))
    const crafted = result([file(blob.id)], [blob])
    const limit = crafted.bytes.length
    await expect(accept(crafted, { bundleBytes: limit - 1 })).rejects.toMatchObject({
      code: 'ResultTooLarge',
      message: expect.stringMatching(new RegExp(`${limit} bytes \\(bundleBytes ${limit - 1}\\)`)),
    })
    await expect(accept(crafted, { bundleBytes: limit })).resolves.toMatchObject({ commit: crafted.commit })
  })

  it('memory that one object is allowed and the process is not', async () => {
    const blob = swollen(500 * mebibyte)
    const crafted = result([file(blob.id)], blob.objects)
    await expect(accept(crafted, { memoryBytes: 300 * mebibyte })).rejects.toMatchObject({
      code: 'ResultTooLarge',
      message: expect.stringMatching(/memoryBytes/),
    })
  })

  it('work that takes more than its share of CPU time', async () => {
    const blobs = [508, 510].map((size) => swollen(size * mebibyte))
    const crafted = result(
      blobs.map(({ id }, i) => file(id, `f${i}`)),
      unique(blobs.flatMap(({ objects }) => objects)),
    )
    await expect(accept(crafted, { cpuSeconds: 1 })).rejects.toMatchObject({
      code: 'ResultTooLarge',
      message: expect.stringMatching(/cpuSeconds 1/),
    })
  })
})

/** In namespaces the same rules hold; every row there is for the full size. */
function confinements(): { name: string; confine: Confine; rows: typeof attacks }[] {
  const direct = { name: 'with limits of the process', confine: unconfined, rows: attacks }
  if (!hasNamespaces()) return [direct]
  const rows = isFullSize ? attacks : attacks.slice(0, 3)
  return [direct, { name: 'in namespaces of its own', confine: inNamespaces, rows }]
}

function hasNamespaces(): boolean {
  return spawnSync('bwrap', ['--unshare-all', '--ro-bind', '/', '/', 'true']).status === 0
}

describe.skipIf(!hasNamespaces())('a git taken over by what it reads, in namespaces of its own', () => {
  const inside = (script: string, confine = inNamespaces): string => {
    const [program = '', ...args] = confine({
      argv: ['/bin/sh', '-c', script],
      readable: [url],
      writable: [join(directory, 'config')],
    })
    return spawnSync(program, args, { encoding: 'utf8', timeout: 60_000 }).stdout.trim()
  }

  it.each([
    { what: 'reads a file outside', script: () => `cat ${directory}/secret` },
    { what: 'writes what it may only read', script: () => `touch ${url}/.git/written && echo written` },
    { what: 'sees a network', script: () => 'tail -n +3 /proc/net/dev 2>/dev/null | grep -v lo:; ls /sys/class/net' },
    { what: 'sees another process', script: () => 'ls -d /proc/[0-9]*' },
    { what: 'has a capability', script: () => 'mount -t tmpfs none /tmp && echo mounted' },
  ])('neither $what', ({ script }) => {
    writeFileSync(join(directory, 'secret'), 'secret', { mode: 0o644 })
    expect(inside(script())).toBe('')
  })

  it('control: reads the mirror and writes to the quarantine', () => {
    mkdirSync(join(directory, 'config'), { recursive: true })
    expect(inside(`cat ${url}/.git/HEAD && touch ${directory}/config/x && echo written`)).toMatch(/refs.*\nwritten$/)
    expect(inside(`cat ${directory}/secret`, unconfined)).toBe('secret')
  })
})

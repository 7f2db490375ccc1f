import { type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ConfinedGit, GitConversation, GitInput } from '../git/confined-git.js'

/** What is asked of a result, each through standard input: such a git can be started before the result is there. */
const commands = {
  /** In: a pack. */
  unpack: ['index-pack', '--stdin', '--fix-thin', '--fsck-objects'],
  /** In: a commit and, behind `^`, a known one. Out: each object between them, and behind `-` the known commits it builds on. */
  reach: ['rev-list', '--objects', '--no-object-names', '--boundary', '--stdin'],
  /** The same in. Out: the commits the mirror does not have, with their parents; its refs are read once it was asked. */
  commits: ['rev-list', '--parents', '--stdin', '--not', '--alternate-refs'],
  /** In: names. */
  objects: ['cat-file', '--batch'],
  /** In: names. */
  sizes: ['cat-file', '--batch-check=%(objecttype) %(objectsize)'],
  /** In: a commit and the one it is compared with. */
  numbers: ['diff-tree', '--stdin', '--no-commit-id', '-r', '--numstat', '-z', '--no-renames'],
} as const

/**
 * The form of a patch that `git apply` turns into the very same tree: whole object names, binary files included. Only
 * exact renames are looked for: others mean reading every file.
 */
const patchOptions = ['--binary', '--full-index', '--no-color', '--no-ext-diff', '--no-textconv', '-M100%']

/** In: a commit and the one it is compared with. */
const patchCommand = ['diff-tree', '--stdin', '--no-commit-id', '-r', '-p', ...patchOptions]

export type QuarantineQuestion = keyof typeof commands

/** A git that writes its answer into a file. */
export interface PatchGit {
  path: string
  file: FileHandle
  git: GitInput
}

/** A git whose time for an answer has mostly gone by is not asked any more. */
const mayWaitMs = 60_000

interface Started<T> {
  it: T
  sinceMs: number
  hasEnded: boolean
}

/**
 * The gits that check one result. Starting one in its cell takes longer than most of its answers, so they can be started
 * ahead, while the sandbox still makes the result; what was not, or ended meanwhile, is started when it is asked.
 */
export class QuarantineGits {
  readonly #gits: { git: ConfinedGit; patchGit: ConfinedGit; patchPath: string }
  readonly #options: { signal: AbortSignal; timeoutMs: number }
  readonly #ahead = new Map<QuarantineQuestion, Started<GitConversation>>()
  #patch: Started<PatchGit> | undefined

  constructor(
    /** `patchGit` may write as much as a patch may take, `git` as much as a result. */
    gits: { git: ConfinedGit; patchGit: ConfinedGit; taskDirectory: string },
    options: { signal: AbortSignal; timeoutMs: number },
  ) {
    this.#gits = { ...gits, patchPath: join(gits.taskDirectory, 'result.patch') }
    this.#options = options
  }

  async startAhead(): Promise<void> {
    for (const question of Object.keys(commands) as QuarantineQuestion[]) {
      const git = this.#start(question)
      this.#ahead.set(question, started(git, git.ended))
      // Starting a process holds up everything else: the others are served in between.
      await new Promise((resolve) => setImmediate(resolve))
    }
    const patch = await this.#startPatch()
    this.#patch = started(patch, patch.git.ended)
  }

  /** The caller closes it. */
  async take(question: QuarantineQuestion): Promise<GitConversation> {
    const ahead = this.#ahead.get(question)
    this.#ahead.delete(question)
    if (ahead && isUsable(ahead)) return ahead.it
    await ahead?.it.close()
    return this.#start(question)
  }

  /** The caller closes git and file. */
  async takePatch(): Promise<PatchGit> {
    const ahead = this.#patch
    this.#patch = undefined
    if (ahead && isUsable(ahead)) return ahead.it
    if (ahead) await closePatch(ahead.it)
    return this.#startPatch()
  }

  /** Ends what was started and not taken, and leaves nothing of it. */
  async close(): Promise<void> {
    const gits = [...this.#ahead.values()]
    const patch = this.#patch
    this.#ahead.clear()
    this.#patch = undefined
    await Promise.all(gits.map(({ it }) => it.close()))
    if (!patch) return
    await closePatch(patch.it)
    await rm(patch.it.path, { force: true })
  }

  #start(question: QuarantineQuestion): GitConversation {
    return this.#gits.git.start(commands[question], this.#options)
  }

  async #startPatch(): Promise<PatchGit> {
    const path = this.#gits.patchPath
    const file = await open(path, 'w', 0o600)
    return { path, file, git: this.#gits.patchGit.startInto(file.fd, patchCommand, this.#options) }
  }
}

function started<T>(it: T, ended: Promise<void>): Started<T> {
  const one: Started<T> = { it, sinceMs: performance.now(), hasEnded: false }
  const end = (): void => {
    one.hasEnded = true
  }
  ended.then(end, end)
  return one
}

const isUsable = ({ hasEnded, sinceMs }: Started<unknown>): boolean =>
  !hasEnded && performance.now() - sinceMs < mayWaitMs

async function closePatch({ git, file }: PatchGit): Promise<void> {
  await git.close()
  await file.close()
}

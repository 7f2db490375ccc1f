import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { SandboxError, toSandboxError, translated } from './sandbox-error.js'
import type { SandboxFiles } from './sandbox-files.js'
import type { SandboxProcess } from './sandbox-process.js'

export interface PushOptions {
  /** A local path, or any address the local git can fetch: credentials stay here. */
  readonly repository: string
  /** Branch, tag or commit; the repository's HEAD without it. */
  readonly ref?: string
  /** Where the work tree goes. */
  readonly directory: string
  readonly signal?: AbortSignal | undefined
}

export interface PullOptions {
  /** The work tree in the sandbox. */
  readonly directory: string
  readonly ref?: string
  /** A local repository that receives the commits. */
  readonly repository: string
  /** Under which name, e.g. `refs/heads/from-sandbox`. */
  readonly as: string
  readonly signal?: AbortSignal | undefined
}

type Exec = (argv: readonly string[], options: { cwd?: string; signal?: AbortSignal | undefined }) => SandboxProcess

const removeTimeoutMs = 5_000

/** Repositories in and commits out, as bundles: the sandbox needs neither network nor credentials. */
export class SandboxGit {
  readonly #files: SandboxFiles
  readonly #exec: Exec

  constructor(files: SandboxFiles, exec: Exec) {
    this.#files = files
    this.#exec = exec
  }

  /** Clones into the sandbox and answers the commit that is checked out. */
  push(options: PushOptions): Promise<string> {
    const { repository, ref = 'HEAD', directory, signal } = options
    return translated(async () => {
      if (ref.startsWith('-')) throw new SandboxError('Invalid', `"${ref}" is not a git ref`)
      return withTemporary(async (temporary) => {
        const bundle = join(temporary, 'in.bundle')
        const mirror = join(temporary, 'mirror.git')
        await git(['clone', '--quiet', '--bare', '--', repository, mirror], { signal })
        const commit = await commitOf(mirror, ref, options)
        await git(['-C', mirror, 'update-ref', 'refs/corral/pushed', commit], { signal })
        await git(['-C', mirror, 'bundle', 'create', '--quiet', bundle, 'refs/corral/pushed'], { signal })
        const branch = await branchName(mirror, ref, signal)
        const inside = `/tmp/.corral-in-${randomUUID()}.bundle`
        // Commits whose parents the repository does not have: without this list the sandbox's git asks for them.
        const shallow = await readFile(join(mirror, 'shallow')).catch(() => new Uint8Array(0))
        const script = `set -e; git init --quiet -- "$1"; cd -- "$1"
if [ -s "$2.shallow" ]; then s=$(git rev-parse --git-path shallow); touch "$s"; sort -u -o "$s" "$s" "$2.shallow"; fi
git fetch --quiet "$2" refs/corral/pushed; git checkout --quiet -B "$3" "$4"`
        try {
          await this.#files.write(inside, createReadStream(bundle) as AsyncIterable<Uint8Array>, { signal })
          if (shallow.length > 0) await this.#files.write(`${inside}.shallow`, shallow, { signal })
          await this.#run(script, [directory, inside, branch, commit], signal)
        } finally {
          await this.#removeInside(inside)
          if (shallow.length > 0) await this.#removeInside(`${inside}.shallow`)
        }
        return commit
      })
    }, signal)
  }

  /** Fetches commits of the sandbox into a local repository and answers the newest. Their objects are checked. */
  pull(options: PullOptions): Promise<string> {
    const { directory, ref = 'HEAD', repository, as, signal } = options
    return translated(async () => {
      if (ref.startsWith('-')) throw new SandboxError('Invalid', `"${ref}" is not a git ref`)
      await git(['check-ref-format', as], { signal }).catch((cause: unknown) => {
        throw new SandboxError('Invalid', `"${as}" is not the full name of a ref`, { cause })
      })
      return withTemporary(async (temporary) => {
        const bundle = join(temporary, 'out.bundle')
        const id = randomUUID()
        const [inside, carried] = [`/tmp/.corral-out-${id}.bundle`, `refs/corral/pulled-${id}`]
        const script = `set -e; cd -- "$1"; git update-ref "$4" "$2^{commit}"; trap 'git update-ref -d "$4"' EXIT
git bundle create --quiet "$3" "$4"`
        try {
          await this.#run(script, [directory, ref, inside, carried], signal)
          await pipeline(Readable.from(this.#files.readStream(inside, { signal })), createWriteStream(bundle))
        } finally {
          await this.#removeInside(inside)
        }
        const guard = ['-c', 'fetch.fsckObjects=true', '-c', 'core.hooksPath=/dev/null']
        const spec = `+${carried}:${as}`
        await git([...guard, '-C', repository, 'fetch', '--quiet', '--no-tags', bundle, spec], { signal })
        return (await git(['-C', repository, 'rev-parse', '--verify', as], { signal })).trim()
      })
    }, signal)
  }

  /** A script on the work tree that its first argument names; a failure is told in git's words. */
  async #run(script: string, args: readonly [string, ...string[]], signal: AbortSignal | undefined): Promise<void> {
    try {
      await this.#exec(['/bin/sh', '-c', script, 'sh', ...args], { signal }).ok()
    } catch (cause) {
      const { code, details } = toSandboxError(cause)
      if (code !== 'CommandFailed') throw cause
      throw new SandboxError(code, `git in "${args[0]}" of the sandbox: ${details.stderr}`, { cause, details })
    }
  }

  /** One that stays in the sandbox's /tmp ends with it: a sandbox that does not answer is not waited for. */
  async #removeInside(path: string): Promise<void> {
    await this.#files.remove(path, { signal: AbortSignal.timeout(removeTimeoutMs) }).catch(() => {})
  }
}

async function commitOf(mirror: string, ref: string, { repository, signal }: PushOptions): Promise<string> {
  try {
    return (await git(['-C', mirror, 'rev-parse', '--verify', '--quiet', `${ref}^{commit}`], { signal })).trim()
  } catch (cause) {
    if (signal?.aborted) throw cause
    const what = ref === 'HEAD' ? 'commit at its HEAD' : `branch, tag or commit "${ref}"`
    const hint = ref === 'HEAD' ? 'Make a first commit, or name a branch with ref.' : 'Name one that it has with ref.'
    throw new SandboxError('NotFound', `repository "${repository}" has no ${what}`, { cause, hint })
  }
}

async function branchName(mirror: string, ref: string, signal: AbortSignal | undefined): Promise<string> {
  const name =
    ref === 'HEAD' ? await git(['-C', mirror, 'symbolic-ref', '--short', 'HEAD'], { signal }).catch(() => '') : ref
  const short = name.trim().replace(/^refs\/heads\//, '')
  const isBranch = await git(['-C', mirror, 'show-ref', '--verify', '--quiet', `refs/heads/${short}`], { signal }).then(
    () => true,
    () => false,
  )
  return isBranch ? short : 'main'
}

async function withTemporary<T>(use: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), 'corral-git-'))
  try {
    return await use(directory)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** What git tells its hooks about the repository at hand: a program that runs in a hook means the one it names. */
const noRepository = {
  GIT_DIR: undefined,
  GIT_WORK_TREE: undefined,
  GIT_INDEX_FILE: undefined,
  GIT_PREFIX: undefined,
  GIT_COMMON_DIR: undefined,
  GIT_NAMESPACE: undefined,
  GIT_OBJECT_DIRECTORY: undefined,
  GIT_ALTERNATE_OBJECT_DIRECTORIES: undefined,
}

async function git(args: readonly string[], options: { signal?: AbortSignal | undefined }): Promise<string> {
  const child = spawn('git', args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...noRepository, GIT_TERMINAL_PROMPT: '0' },
    ...(options.signal ? { signal: options.signal } : {}),
  })
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    err = (err + chunk.toString()).slice(-2048)
  })
  const [code] = (await once(child, 'close')) as [number | null]
  const isValue = (at: number) => ['-C', '-c'].includes(args[at - 1] ?? '')
  const verb = args.find((argument, at) => !argument.startsWith('-') && !isValue(at))
  if (code !== 0) throw new SandboxError('CommandFailed', `git ${verb}: ${err.trim()}`)
  return out
}

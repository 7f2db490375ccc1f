import { execFileSync } from 'node:child_process'
import { copyFileSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TaskWarning } from '@corral/protocol'
import { errorCode } from '@corral/resources'
import { createGit, createRepository, type Repository, writeGlobalConfig } from '@corral/tasks'
import type { AcceptedResult } from '../../packages/tasks/src/repository/repository.js'
import { sourceWarnings } from '../../packages/tasks/src/repository/source-facts.js'
import {
  type CollectedScripts,
  openScriptedSandbox,
  type ScriptedSandbox,
} from '../../packages/tasks/src/sandbox/scripted-sandbox.test-suite.js'
import { rejectionOf } from '../../packages/tasks/src/steps/collect-work.js'

const identity = {
  GIT_AUTHOR_NAME: 'Test',
  GIT_AUTHOR_EMAIL: 'test@localhost',
  GIT_COMMITTER_NAME: 'Test',
  GIT_COMMITTER_EMAIL: 'test@localhost',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  // The sandbox works as another user where the tests run as root.
  GIT_CONFIG_COUNT: '1',
  GIT_CONFIG_KEY_0: 'safe.directory',
  GIT_CONFIG_VALUE_0: '*',
}

/** git's output as bytes; throws with what it said when it fails. */
function gitBytes(cwd: string, ...args: string[]): Buffer {
  return gitBytesOf(cwd, args, '')
}

function gitBytesOf(cwd: string, args: readonly string[], input: string): Buffer {
  return execFileSync('git', args, {
    cwd,
    input,
    env: { PATH: process.env.PATH ?? '', ...identity },
    stdio: ['pipe', 'pipe', 'pipe'],
    maxBuffer: 1024 ** 3,
  })
}

export function git(cwd: string, ...args: string[]): string {
  return gitBytes(cwd, ...args)
    .toString('utf8')
    .trim()
}

export function shell(cwd: string, script: string): string {
  return execFileSync('/bin/sh', ['-c', `set -e\n${script}`], {
    cwd,
    encoding: 'utf8',
    env: { PATH: process.env.PATH ?? '', HOME: cwd, ...identity },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

/** Names of what a bundle beside a result holds. */
export function keptRefs(bundle: string | undefined): string[] {
  if (!bundle) return []
  return git('/', 'bundle', 'list-heads', bundle)
    .split('\n')
    .map((line) => line.split(' ')[1]?.replace('refs/corral/kept/', '') ?? '')
    .sort()
}

/** Names of the files in the archive of what could not become part of a result. */
export function packedFiles({ leftOut, leftOutPath }: CollectedScripts): string[] {
  if (leftOut === 'no') return []
  if (leftOut === 'lost') return ['lost']
  return shell('/', `tar --quoting-style=literal -tf ${leftOutPath}`)
    .split('\n')
    .filter((name) => name !== '' && !name.endsWith('/'))
    .map((name) => name.replace(/^(\.|.*\/box-[^/]*)\//, ''))
    .filter((name, index, all) => all.indexOf(name) === index)
    .sort()
}

/** Path → `mode bytes`, for every file. */
export type Snapshot = Map<string, string>

const maxPathBytes = 4095

/** The files on disk as git would store them: mode and bytes. Nothing called `.git` is looked into. */
export function snapshotOfDisk(root: string): Snapshot {
  const files: Snapshot = new Map()
  // Names are bytes: latin1 keeps each of them as one character.
  const walk = (below: string): void => {
    for (const name of readdirSync(onDisk(root, below), { encoding: 'latin1' })) {
      if (name === '.git') continue
      const key = below === '' ? name : `${below}/${name}`
      const path = onDisk(root, key)
      // Longer than a path may be: no commit can hold it.
      if (path.length > maxPathBytes) continue
      const info = lstatSync(path)
      if (info.isDirectory()) walk(key)
      else if (info.isSymbolicLink()) files.set(key, `120000 ${readlinkSync(path, 'latin1')}`)
      else if (info.isFile())
        files.set(key, `${info.mode & 0o100 ? '100755' : '100644'} ${readFileSync(path).toString('latin1')}`)
    }
  }
  walk('')
  return files
}

const onDisk = (root: string, key: string): Buffer =>
  Buffer.concat([Buffer.from(`${root}/`), Buffer.from(key, 'latin1')])

/** The files of a commit, as git stores them. */
export function snapshotOfCommit(repository: string, commit: string): Snapshot {
  const entries = gitBytes(repository, 'ls-tree', '-r', '-z', commit)
    .toString('latin1')
    .split('\0')
    .flatMap((entry) => {
      const match = /^(\d+) (\w+) (\w+)\t(.*)$/s.exec(entry)
      return match ? [match as unknown as [string, string, string, string, string]] : []
    })
  const blobs = contentsOf(repository, [...new Set(entries.flatMap(([, , type, id]) => (type === 'blob' ? [id] : [])))])
  return new Map(entries.map(([, mode, , id, path]) => [path, `${mode} ${blobs.get(id) ?? id}`]))
}

/** Blobs by their id, all from one process. */
function contentsOf(repository: string, ids: readonly string[]): Map<string, string> {
  const found = new Map<string, string>()
  if (ids.length === 0) return found
  const output = gitBytesOf(repository, ['cat-file', '--batch'], `${ids.join('\n')}\n`).toString('latin1')
  for (let at = 0; at < output.length; ) {
    const end = output.indexOf('\n', at)
    const [id = '', , size = '0'] = output.slice(at, end).split(' ')
    found.set(id, output.slice(end + 1, end + 1 + Number(size)))
    at = end + 1 + Number(size) + 1
  }
  return found
}

export interface Workshop extends Disposable {
  readonly directory: string
  readonly repository: Repository
  /** A new empty directory. */
  fresh(name: string): string
  /** Fetches, checks out, lets the agent work, collects, accepts and publishes. */
  roundTrip(url: string, trip: Trip): Promise<Landed>
}

export interface Trip {
  branch?: string
  baseBranch?: string
  submodules?: 'direct' | 'recursive'
  setup?: string
  agent: string
  gitConfig?: string
  /** Looks at what the agent left, before it is collected. */
  before?: (sandbox: ScriptedSandbox) => void
}

export interface Landed {
  sandbox: ScriptedSandbox
  base: string
  collected: CollectedScripts
  /** What the platform says about the source. */
  warnings: TaskWarning[]
  taskDirectory: string
  patchPath: string | undefined
}

export async function openWorkshop(): Promise<Workshop> {
  const directory = mkdtempSync(join(tmpdir(), 'corral-repositories-'))
  const globalConfig = await writeGlobalConfig(join(directory, 'config'), process.env)
  const repository = createRepository({
    git: createGit({ globalConfig, env: process.env }),
    mirrorsDirectory: join(directory, 'mirrors'),
  })
  const { signal } = new AbortController()
  const fresh = (name: string): string => mkdtempSync(join(directory, `${name}-`))
  return {
    directory,
    repository,
    fresh,
    async roundTrip(url, { branch = 'corral/x', baseBranch, submodules, setup, agent, gitConfig, before }) {
      const taskDirectory = fresh('task')
      const prepared = await repository.prepare({
        url,
        taskDirectory,
        signal,
        newBranch: branch,
        ...(baseBranch ? { baseBranch } : {}),
        ...(submodules ? { submodules } : {}),
      })
      const sandbox = openScriptedSandbox({
        directory,
        prepared,
        branch,
        shallow: await repository.shallowCommits(url),
        ...(gitConfig ? { gitConfig } : {}),
      })
      if (setup) sandbox.setup(setup)
      sandbox.agent(agent)
      before?.(sandbox)
      const accept = ({ bundlePath, commit: claimedCommit }: CollectedScripts): Promise<AcceptedResult> =>
        repository.accept({ url, taskDirectory, bundlePath, baseCommit: prepared.commit, claimedCommit, signal })
      let collected = sandbox.collect()
      let patchPath: string | undefined
      if (collected.changed) {
        const accepted = await accept(collected).catch((error: Error) => {
          if (errorCode(error) !== 'ResultRejected') throw error
          const { kept, keptPath } = collected
          if (kept) copyFileSync(keptPath, join(taskDirectory, 'kept.bundle'))
          collected = sandbox.collectFiles(rejectionOf(error))
          if (kept) collected = { ...collected, kept, keptPath: join(taskDirectory, 'kept.bundle') }
          return accept(collected)
        })
        patchPath = accepted.patchPath
        await repository.publish({ url, taskDirectory, commit: accepted.commit, branch, signal })
      }
      const warnings = sourceWarnings(prepared.facts, {
        hasSubmodules: prepared.submodules.length > 0,
        hasLfs: false,
        isPartial: prepared.isPartial,
      })
      return { sandbox, base: prepared.commit, collected, warnings, taskDirectory, patchPath }
    },
    // The program, because Node cannot remove paths that are longer than a path may be.
    [Symbol.dispose]: () => void execFileSync('rm', ['-rf', directory]),
  }
}

/** A repository with a bit of everything git can store. */
export function sampleRepository(workshop: Workshop, options: { format?: 'sha256'; branch?: string } = {}): string {
  const path = workshop.fresh('source')
  mkdirSync(path, { recursive: true })
  const format = options.format ? `--object-format=${options.format}` : ''
  shell(
    path,
    `
    git init -q ${format} -b ${options.branch ?? 'main'} .
    printf 'one\\n' > a.txt; mkdir -p dir/deep; printf 'two\\n' > dir/b.txt; printf 'three' > dir/deep/c.txt
    printf '#!/bin/sh\\necho run\\n' > run.sh; chmod +x run.sh
    ln -s a.txt link; ln -s missing dangling
    printf 'ignored/\\n*.log\\n' > .gitignore
    printf '\\000\\001\\377binary' > data.bin
    git add -A; git commit -qm 'first'
    printf 'one and a half\\n' >> a.txt; git commit -qam 'second'; git tag -a v1 -m 'version 1'
    printf 'x\\n' > extra.txt; git add extra.txt; git commit -qm 'third'
    `,
  )
  return path
}

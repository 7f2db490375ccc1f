import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { resultRef } from '../repository/quarantine.js'
import type { PreparedRepository } from '../repository/repository.js'
import { submoduleEnvironment } from '../steps/check-out-submodules.js'
import { inPlaceScript } from '../steps/in-place-script.js'
import { collectScript, markSetupScript } from './collect-script.js'
import {
  baseRefOf,
  type CollectedWork,
  type CollectRequest,
  collectEnvironment,
  isUnchanged,
  parseCollected,
  scratchFiles,
} from './collected-work.js'
import { lfsFilterScript } from './lfs-filter.js'
import { checkoutScript, submoduleScript } from './scripts.js'

/** A directory that stands in for a sandbox: the same scripts, run by a plain user, without the daemon between. */
export interface ScriptedSandbox {
  readonly repo: string
  readonly scratch: string
  /** Runs a shell script in the work tree, as the agent would; throws when it fails. */
  agent(script: string): string
  /** Runs a set-up command and marks what it left. */
  setup(script: string, options?: { fromSnapshot?: boolean }): void
  /** What a checkpoint beside the running agent takes out; undefined where nothing changed since the last one. */
  checkpoint(): CollectedWork | undefined
  /** What the platform's collection finds; the base is sent in again when the agent's repository is of no use. */
  collect(options?: { workName?: string; ways?: CollectRequest['ways']; isEvicted?: boolean }): CollectedScripts
  /** Goes on in the same work tree as the follow-up of a task whose result was accepted. */
  followUp(former: CollectedScripts): void
  /** Its files alone, after what it collected was not accepted. */
  collectFiles(rejected: NonNullable<CollectRequest['rejected']>): CollectedScripts
}

export interface CollectedScripts extends CollectedWork {
  bundlePath: string
  keptPath: string
  leftOutPath: string
}

const author = { name: 'Corral', email: 'corral@localhost' }
/** Permissions mean nothing to root: its tests work as the user `nobody`. */
const user = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}

export function openScriptedSandbox(options: {
  directory: string
  prepared: PreparedRepository
  branch: string
  shallow?: readonly string[]
  gitConfig?: string
  /** Whether files go to Git LFS. */
  lfs?: boolean
  /** Where its programs are looked for. */
  path?: string
  /** The result of a task that this one repeats, to go on from. */
  workBundle?: string
}): ScriptedSandbox {
  const { prepared } = options
  const box = mkdtempSync(join(options.directory, 'box-'))
  const repo = join(box, 'repo')
  const scratch = join(box, '.corral')
  mkdirSync(scratch)
  chmodSync(options.directory, 0o755)
  if (options.gitConfig) writeFileSync(join(box, '.gitconfig'), options.gitConfig)
  for (const path of [box, scratch]) if (user.uid) chownSync(path, user.uid, user.gid)
  const shallow = options.shallow ?? []
  const bring = (name: string, from = prepared.bundlePath): string => {
    const path = join(scratch, name)
    copyFileSync(from, path)
    if (user.uid) chownSync(path, user.uid, user.gid)
    return path
  }
  const env = { PATH: options.path ?? process.env.PATH ?? '', HOME: box }
  const shell = (script: string, cwd: string, more: Record<string, string> = {}): string =>
    execFileSync('/bin/sh', ['-c', script], {
      cwd,
      encoding: 'utf8',
      env: { ...env, ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...user,
    })
  const lfsFilter = options.lfs ? join(scratch, 'lfs-filter') : undefined
  if (lfsFilter) writeFileSync(lfsFilter, lfsFilterScript)
  for (const { oid, path } of prepared.lfs) {
    const place = scratchFiles.lfsObject(scratch, oid)
    mkdirSync(dirname(place), { recursive: true })
    copyFileSync(path, place)
  }
  if (options.lfs && user.uid) execFileSync('chown', ['-R', `${user.uid}:${user.gid}`, scratch])
  shell(checkoutScript, box, {
    BUNDLE: bring('in.bundle'),
    LFS_FILTER: lfsFilter ?? '',
    PARTIAL: prepared.isPartial ? 'yes' : '',
    USES_LFS: prepared.facts.usesLfs ? 'yes' : '',
    PACK_NAME: prepared.pack.name,
    PACK_OFFSET: String(prepared.pack.offsetBytes),
    PACK_INDEX: bring('in.idx', prepared.pack.indexPath),
    BASE_COMMIT: prepared.commit,
    BASE_REF: baseRefOf(prepared.commit),
    BASE_BRANCH: prepared.branch ?? '',
    NEW_BRANCH: options.branch,
    REPO: repo,
    MARKER: join(scratch, 'marker'),
    REFS: scratchFiles.refs(scratch),
    SHALLOW: shallow.join('\n'),
    AUTHOR_NAME: author.name,
    AUTHOR_EMAIL: author.email,
    ...(options.workBundle ? { WORK_BUNDLE: bring('work.bundle', options.workBundle), WORK_REF: resultRef } : {}),
  })
  for (const [index, submodule] of prepared.submodules.entries())
    shell(
      submoduleScript,
      box,
      submoduleEnvironment(submodule, {
        repository: repo,
        bundle: bring(`submodule-${index}.bundle`, submodule.bundlePath),
        packIndex: bring(`submodule-${index}.idx`, submodule.pack.indexPath),
        marker: join(scratch, `submodule-${index}`),
        author,
      }),
    )
  let request: CollectRequest = {
    place: { repository: repo, scratch },
    workName: 'collect',
    ways: [1],
    baseCommit: prepared.commit,
    branch: options.branch,
    resultRef,
    message: 'Do the work\n\nCorral-Task: task-x\n',
    author,
    shallow,
    ...(lfsFilter ? { lfsFilter } : {}),
  }
  /** What the last run that found no way said. */
  let failure = ''
  const runScript = (more: Partial<CollectRequest>): string | undefined => {
    const result = spawnSync('/bin/sh', ['-c', collectScript], {
      // The agent may have closed the directory around its checkout.
      cwd: '/',
      encoding: 'utf8',
      env: { ...env, ...collectEnvironment({ ...request, ...more }) },
      ...user,
    })
    if (process.env.CORRAL_DEBUG_COLLECT) process.stderr.write(`${result.stdout}${result.stderr}`)
    if (result.status === 0) return result.stdout
    failure = result.stderr
    return undefined
  }
  const runWays = (more: Partial<CollectRequest>): CollectedWork | undefined => {
    const stdout = runScript(more)
    return stdout === undefined ? undefined : parseCollected(stdout)
  }
  return {
    repo,
    scratch,
    agent: (script) => shell(`set -e\n${script}`, existsSync(repo) ? repo : box),
    setup(script, { fromSnapshot = false } = {}) {
      shell(`set -e\n${script}`, repo)
      const marked = collectEnvironment({ ...request, workName: 'mark' })
      shell(markSetupScript, box, { ...marked, FROM_SNAPSHOT: fromSnapshot ? 'yes' : '' })
    },
    checkpoint() {
      const lastState = join(scratch, 'checkpoint-state')
      const stdout = runScript({ workName: 'checkpoint', lastState })
      if (stdout === undefined) throw new Error('no checkpoint could be made')
      if (isUnchanged(stdout)) return undefined
      copyFileSync(scratchFiles.state(scratch, 'checkpoint'), lastState)
      if (user.uid) chownSync(lastState, user.uid, user.gid)
      return parseCollected(stdout)
    },
    collect({ workName = 'collect', ways, isEvicted = false } = {}) {
      const place = {
        bundlePath: join(scratch, workName, 'out.bundle'),
        keptPath: join(scratch, workName, 'kept.bundle'),
        leftOutPath: scratchFiles.leftOut(scratch, workName),
      }
      const first = runWays({ workName, isEvicted, ...(ways ? { ways } : {}) })
      if (first) return { ...first, ...place }
      const second = runWays({ workName, isEvicted, ways: [2, 3, 4], baseBundle: bring('base.bundle'), failure })
      if (!second) throw new Error('nothing was collected')
      return { ...second, ...place }
    },
    followUp({ commit, bundlePath }) {
      shell(inPlaceScript, box, {
        REPO: repo,
        SCRATCH: scratch,
        FORMER: join(scratch, 'marker'),
        MARKER: join(scratch, 'marker-of-follow-up'),
        BASE_COMMIT: commit,
        NEW_BRANCH: options.branch,
        RESULT: bring('former.bundle', bundlePath),
        RESULT_REF: resultRef,
        REFS: scratchFiles.refs(scratch),
      })
      request = { ...request, baseCommit: commit }
    },
    collectFiles(rejected) {
      const found = runWays({ ways: [3, 4], baseBundle: bring('base.bundle'), rejected })
      if (!found) throw new Error('no files were collected')
      const work = join(scratch, request.workName)
      return {
        ...found,
        bundlePath: join(work, 'out.bundle'),
        keptPath: join(work, 'kept.bundle'),
        leftOutPath: join(work, 'left-out.tar'),
      }
    },
  }
}

import { randomUUID } from 'node:crypto'
import type { KubeClient } from '@corral/kube'
import type {
  BuildEnvironmentRequest,
  EnvironmentBuildView,
  EnvironmentEvents,
  EnvironmentSettingsView,
  EnvironmentView,
  RebuildEnvironmentRequest,
} from '@corral/protocol'
import {
  type Environment,
  type EnvironmentBuild,
  type EnvironmentSettings,
  Environments,
  findCondition,
  isNotFound,
  type Stored,
} from '@corral/resources'
import { ensureEnvironment, isBuilding, requestBuild } from '../environment/build/environment-object.js'
import { isKept } from '../environment/build/plan.js'
import { environmentVariables } from '../environment/path-entries.js'
import type { Git } from '../git/git.js'
import type { TaskRecords } from '../records/task-records.js'
import { checkLocalRequest, localPathOf } from '../repository/local-repository.js'
import { parseRepositoryUrl } from '../repository/repository-url.js'
import { TaskError } from '../task-error.js'
import { definedOnly, submoduleDepths } from '../task-request.js'

/** Environments as people and tools see them. `EnvironmentNotFound` where there is none of the name. */
export interface EnvironmentService {
  /** By name. */
  list(): Promise<EnvironmentView[]>
  get(name: string): Promise<EnvironmentView>
  /** Asks for a build and waits for no end. One that runs is joined. */
  build(request: BuildEnvironmentRequest): Promise<EnvironmentView>
  rebuild(name: string, request: RebuildEnvironmentRequest): Promise<EnvironmentView>
  /** What the last build said after this sequence. */
  events(name: string, after: number): Promise<EnvironmentEvents>
  remove(name: string): Promise<void>
}

export interface EnvironmentServiceOptions {
  client: KubeClient
  namespace: string
  records: Pick<TaskRecords, 'events'>
  git: Git
  /** See `TaskServiceOptions`. */
  localRepositories: boolean
}

/** It is built anew once it is gone: a build asked for now would never begin. */
function stillGoing(name: string): TaskError {
  return new TaskError('Conflict', `the environment ${name} is being removed; a sandbox still has what it built`, {
    hint: 'Build it again when that sandbox has ended. Tasks set themselves up until then.',
  })
}

/** Events one answer holds at most; the next one goes on. */
const maxEvents = 1_000

export function createEnvironmentService(options: EnvironmentServiceOptions): EnvironmentService {
  const { client, namespace, records } = options
  const get = async (name: string): Promise<Stored<Environment>> => {
    try {
      if (/^[a-z0-9][a-z0-9.-]{0,252}$/.test(name)) return await client.get(Environments, { namespace, name })
    } catch (error) {
      if (!isNotFound(error)) throw error
    }
    throw new TaskError('EnvironmentNotFound', `there is no environment "${name.slice(0, 100)}"`)
  }
  const ask = async (environment: Stored<Environment>, noCache: boolean | undefined): Promise<EnvironmentView> => {
    const build = { request: randomUUID(), ...(noCache ? { noCache } : {}) }
    // What runs is of the same branch, and of its tip a moment ago.
    const { name } = environment.metadata
    let current = environment
    for (;;) {
      if (current.metadata.deletionTimestamp) throw stillGoing(name)
      const isJoined = isBuilding(current) && !noCache
      const isAsked = !isJoined && (await requestBuild(client, current, build))
      current = await get(name)
      // One that was joined may have ended meanwhile: told as ended, it would be taken for the one before, and the next waited for.
      if (isAsked || (isJoined && isBuilding(current))) return environmentView(current)
    }
  }
  return {
    async list() {
      const { items } = await client.list(Environments, { namespace })
      return items.map(environmentView).sort((one, other) => one.name.localeCompare(other.name))
    },
    get: async (name) => environmentView(await get(name)),
    async build({ repo, ref, part, environment_file, submodules, lfs, sandbox, no_cache }) {
      const branch = await checkedRef(options, repo, ref)
      const environment = await ensureEnvironment(client, namespace, {
        repository: {
          url: repo,
          ...(submodules === undefined ? {} : { submodules: submoduleDepths[String(submodules)]! }),
          ...(lfs === undefined ? {} : { lfs }),
        },
        ...(branch ? { ref: branch } : {}),
        ...(part ? { part } : {}),
        ...(environment_file ? { file: environment_file } : {}),
        ...(sandbox ? { sandbox: definedOnly(sandbox) } : {}),
      })
      return ask(environment, no_cache)
    },
    rebuild: async (name, { no_cache }) => ask(await get(name), no_cache),
    async events(name, after) {
      const { status } = await get(name)
      const events: EnvironmentEvents['events'] = []
      if (status?.build)
        for await (const event of records.events.read(status.build.uid, { after })) {
          events.push(event)
          if (events.length === maxEvents) break
        }
      return { events, ...(status?.build ? { build: buildView(status.build) } : {}) }
    },
    async remove(name) {
      await get(name)
      await client.delete(Environments, { namespace, name }).catch((error: unknown) => {
        if (!isNotFound(error)) throw error
      })
    },
  }
}

/** The branch that is trusted: the one that is named, or that of the work tree on this machine. */
async function checkedRef(
  { git, localRepositories }: EnvironmentServiceOptions,
  repo: string,
  ref: string | undefined,
): Promise<string | undefined> {
  const path = localPathOf(parseRepositoryUrl(repo))
  if (path === undefined) {
    if (ref !== undefined) return ref
    throw new TaskError('Invalid', 'ref: is required for a repository on a server', {
      hint: 'Name its default branch, which tasks build from.',
    })
  }
  if (!localRepositories)
    throw new TaskError('LocalRepositoryRefused', `${path} is on a disk of the server, which takes remote ones only`, {
      hint: 'Give an https:// or ssh:// address, or start the server with --local-repositories.',
    })
  await checkLocalRequest(path, { baseBranch: ref })
  if (ref !== undefined) return ref
  const head = await git(['symbolic-ref', '--quiet', '--short', 'HEAD'], { cwd: path, timeoutMs: 10_000 }).catch(
    () => undefined, // a detached HEAD has no branch
  )
  return head?.stdout.trim() || undefined
}

/** An environment as the API shows it. */
export function environmentView({ metadata, spec, status }: Stored<Environment>): EnvironmentView {
  const { repository, ref, part, file } = spec
  const conditions = status?.conditions ?? []
  const stale = findCondition(conditions, 'Stale')
  return {
    name: metadata.name,
    repo: repository.url,
    ...(ref ? { ref } : {}),
    ...(part ? { part } : {}),
    ...(file ? { environment_file: file } : {}),
    built: findCondition(conditions, 'Built')?.status === 'True',
    ...(stale?.status === 'True' ? { stale: stale.reason } : {}),
    ...(status?.key ? { key: status.key } : {}),
    snapshots: (status?.snapshots ?? []).map((each) => ({
      name: each.name,
      key: each.key,
      commit: each.commit,
      lockfiles: each.lockfiles,
      built_at: each.builtAt,
      size_bytes: each.sizeBytes,
      files: each.files,
      ...(each.lastUsedAt ? { last_used_at: each.lastUsedAt } : {}),
      ...(each.settings ? { settings: settingsView(each.settings) } : {}),
    })),
    ...(status?.build ? { build: buildView(status.build) } : {}),
    created_at: metadata.creationTimestamp,
  }
}

function buildView(build: EnvironmentBuild): EnvironmentBuildView {
  const { number, attempt, state, startedAt, finishedAt, commit, key, snapshot, sandboxName, settings, cause } = build
  return {
    number,
    attempt,
    state,
    started_at: startedAt,
    ...(finishedAt ? { finished_at: finishedAt } : {}),
    ...(commit ? { commit } : {}),
    ...(key ? { key } : {}),
    ...(snapshot ? { snapshot } : {}),
    ...(sandboxName && (state !== 'Failed' || isKept(cause?.code)) ? { sandbox: sandboxName } : {}),
    ...(settings ? { settings: settingsView(settings) } : {}),
    ...(cause ? { cause } : {}),
  }
}

function settingsView(settings: EnvironmentSettings): EnvironmentSettingsView {
  const { path = [], tools = [], image, resources } = settings
  const shown = { status: { environment: { commit: '', ...settings } } }
  return {
    env: environmentVariables(shown),
    path: [...path, ...new Set(tools.flatMap(({ bin }) => (bin === '' ? [] : [bin])))],
    tools: tools.map(({ name, version }) => `${name} ${version}`),
    ...(image ? { image } : {}),
    ...(resources ? { resources } : {}),
  }
}

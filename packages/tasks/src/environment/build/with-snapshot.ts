import { type TaskEvent, type TaskEventBody, taskWarning } from '@corral/protocol'
import {
  type AgentTask,
  type AgentTaskStatus,
  type Environment,
  type EnvironmentBuild,
  packagesGrant,
  type Stored,
} from '@corral/resources'
import type { PreparedRepository } from '../../repository/repository.js'
import type { DeclaredEnvironment } from '../declared-environment.js'
import type { SandboxContext } from '../sandbox-context.js'
import { type BuiltSnapshot, chooseSnapshot } from './choose-snapshot.js'
import type { EnvironmentBuilds } from './environment-builds.js'
import type { EnvironmentKey } from './environment-key.js'
import { isKept } from './plan.js'
import { snapshotLimits } from './prune.js'
import { keyInSandbox } from './sandbox-facts.js'

type Declared = Omit<DeclaredEnvironment, 'wanted'>
type TaskEnvironment = NonNullable<AgentTaskStatus['environment']>

interface Search {
  context: SandboxContext
  environments: EnvironmentBuilds
  environment: Stored<Environment>
  wanted: EnvironmentKey
  /** Whether the base is where builds come from. */
  isTrusted: boolean
}

/** Snapshots that went away between being found and being attached, one after the other. */
const maxTries = 3

/** Failures that say nothing about the set-up: the task tries it by itself. */
const platformTrouble = new Set([
  'SnapshotRefused',
  'SandboxLost',
  'ProvisioningTimeout',
  'InternalError',
  'DaemonUnreachable',
])

/**
 * Gives the task's sandbox what its environment has built, before anything is checked out. Where nothing fits it is built first,
 * once for all tasks that wait for it. A task that brings its own set-up, or says so, sets itself up as ever. Safe to repeat.
 */
export async function withSnapshot(
  context: SandboxContext,
  declared: Declared,
  prepared: PreparedRepository,
): Promise<Declared> {
  const { environments, task } = context
  const found = declared.status.environment
  if (!environments || !found || !(await mayUseSnapshot(context, found))) return declared
  const { daemon } = await context.openSandbox()
  const wanted = await keyInSandbox(context, daemon, found, prepared, declared.keyFiles)
  const { repository, part, environmentFile, sandbox, continues } = task.spec
  const ref = continues?.baseBranch ?? prepared.trustedBranch
  const environment = await environments.ensure({
    repository,
    ...(ref ? { ref } : {}),
    ...(part ? { part } : {}),
    ...(environmentFile ? { file: environmentFile } : {}),
    ...(sandbox ? { sandbox } : {}),
  })
  const isTrusted = prepared.branch === environment.spec.ref && continues?.commit === undefined
  const given = await snapshotFor({ context, environments, environment, wanted, isTrusted })
  if ('snapshot' in given) {
    const { name, builtAt } = given.snapshot
    const exact = given.snapshot.key === wanted.key
    const snapshot = { name, environment: environment.metadata.name, key: wanted.key, exact, builtAt }
    const detail = `snapshot ${name}${exact ? '' : ', with other lock files'}, built ${builtAt}`
    return { ...declared, ...also(declared, found, { snapshot }, detail) }
  }
  if (!mayFallBack(task, given.failure)) return { ...declared, ...also(declared, found, { failure: given.failure }) }
  const warning = taskWarning('SnapshotNotUsed', { detail: `${given.failure.code}: ${given.failure.message}` })
  return { ...declared, warnings: [...declared.warnings, warning] }
}

function also(
  { status, events }: Declared,
  found: TaskEnvironment,
  more: Partial<TaskEnvironment>,
  detail?: string,
): Pick<Declared, 'status' | 'events'> {
  const event = { type: 'stage', stage: 'repository', state: 'progress' } as const
  return {
    status: { ...status, environment: { ...found, ...more } },
    events: detail ? [...events, { ...event, detail }] : events,
  }
}

type Failure = NonNullable<TaskEnvironment['failure']>

async function snapshotFor(search: Search): Promise<{ snapshot: BuiltSnapshot } | { failure: Failure }> {
  const { context, environments, wanted } = search
  // An earlier run of this step may have got that far: a pod keeps the snapshot it has.
  const before = await environments.attached(context)
  const known = before === undefined ? undefined : environments.find(before)
  if (known && (await environments.attach(context, known.name))) return { snapshot: known }
  // Removed by somebody who wants it no more: tasks that come meanwhile would keep it alive for ever.
  if (search.environment.metadata.deletionTimestamp)
    return { failure: { code: 'SnapshotRefused', message: 'the environment is being removed' } }
  for (let tries = 1; tries <= maxTries; tries++) {
    const choice = chooseSnapshot(environments.snapshots(search.environment), wanted)
    if (!choice) {
      const build = await waitForBuild(search)
      if (build.cause) return { failure: failureOf(build, search.environment) }
      const built = chooseSnapshot(environments.snapshots(search.environment), wanted)
      // The branch moved on meanwhile and is set up in another way now.
      if (!built) return { failure: { code: 'SnapshotRefused', message: 'what was built has another set-up' } }
      continue
    }
    if (await environments.attach(context, choice.snapshot.name)) {
      await refresh(search, choice)
      return choice
    }
  }
  return { failure: { code: 'SnapshotRefused', message: 'snapshots went away before they could be attached' } }
}

/** Builds for the tasks after this one, which has what it needs for now. */
async function refresh(
  { context, environments, environment, wanted, isTrusted }: Search,
  { snapshot, isExact }: { snapshot: BuiltSnapshot; isExact: boolean },
): Promise<void> {
  const ageMs = context.now().getTime() - Date.parse(snapshot.builtAt)
  if (isExact && ageMs > snapshotLimits.maxAgeMs) await environments.request(environment, `age-${snapshot.name}`)
  else if (!isExact && isTrusted) await environments.request(environment, `files-${wanted.key.slice(0, 16)}`)
}

/** What the build says is told in the task's events. */
async function waitForBuild({ context, environments, environment, wanted }: Search): Promise<EnvironmentBuild> {
  const { task, eventLog, signal } = context
  const { uid } = task.metadata
  const last = environment.status?.build
  // What cannot be kept would be built for every task in vain.
  if (last?.cause?.code === 'SnapshotRefused' && last.key === wanted.key) return last
  const detail = `environment ${environment.metadata.name} is being built`
  await eventLog.append(uid, [{ type: 'stage', stage: 'repository', state: 'progress', detail }])
  let skip = await toldBefore(context)
  return environments.build(environment, `task-${uid}`, {
    signal,
    async onEvents(events) {
      const told = events.flatMap(worthTelling)
      const fresh = told.slice(skip)
      skip = Math.max(0, skip - told.length)
      if (fresh.length > 0) await eventLog.append(uid, fresh)
    },
  })
}

function worthTelling(event: TaskEvent): TaskEventBody[] {
  const { sequence: _, time: __, ...body } = event
  return isOfBuild(event) ? [body as TaskEventBody] : []
}

/** Warnings of set-up itself; the others the task finds by itself. */
const setupWarnings = new Set(['EgressRefused', 'SetupSilent', 'SetupOutsideSnapshot'])

const isOfBuild = (event: TaskEvent): boolean =>
  (event.type === 'output' && event.stage === 'setup') || (event.type === 'warning' && setupWarnings.has(event.code))

/** After a restart the events of the build are read again from their beginning. */
async function toldBefore({ eventLog, task }: SandboxContext): Promise<number> {
  let count = 0
  for await (const event of eventLog.read(task.metadata.uid)) if (isOfBuild(event)) count++
  return count
}

function failureOf({ cause, key }: EnvironmentBuild, { metadata }: Stored<Environment>): Failure {
  const { code = 'InternalError', message = 'the build failed' } = cause ?? {}
  if (!isKept(code)) return { code, message, ...(cause?.hint ? { hint: cause.hint } : {}) }
  const look = `Look around in what it left: \`corral env shell ${metadata.name} --failed\`${key ? ` (key ${key.slice(0, 12)})` : ''}`
  return { code, message, hint: [cause?.hint, look].filter(Boolean).join(' ') }
}

/** Whether the environment can be built without the task: what the task brings by itself is not there then. */
export async function mayUseSnapshot(
  { task, grantedTo }: Pick<SandboxContext, 'task' | 'grantedTo'>,
  { setup, source, egress = [], setupEgress = [] }: TaskEnvironment,
): Promise<boolean> {
  const { spec, status } = task
  if (setup === undefined && source !== '.corral/setup') return false
  if (spec.setup !== undefined || spec.useSnapshot === false || status?.sandbox?.takenFrom) return false
  const granted = new Set((await grantedTo(spec.repository.url)).egress)
  return [...egress, ...setupEgress].every((rule) => isPackages(rule) || granted.has(rule.toLowerCase()))
}

function mayFallBack({ spec }: AgentTask, { code }: Failure): boolean {
  const hasOwnNetwork = [...(spec.egress ?? []), ...(spec.setupEgress ?? [])].some((rule) => !isPackages(rule))
  return hasOwnNetwork || platformTrouble.has(code)
}

const isPackages = (rule: string): boolean => rule.toLowerCase() === packagesGrant

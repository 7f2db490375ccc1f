import {
  type DaemonClient,
  type EnvironmentRequest,
  environmentFilePath,
  type TaskEventBody,
  type TaskWarning,
  taskWarning,
} from '@corral/protocol'
import { type AgentTaskStatus, packagesGrant, resourcesText } from '@corral/resources'
import type { PreparedRepository } from '../repository/repository.js'
import { TaskError } from '../task-error.js'
import { parseEnvironmentFile } from './environment-file.js'
import { foreignFiles, readForeignEnvironment } from './foreign/read-foreign.js'
import type { SandboxContext } from './sandbox-context.js'
import { taskEnvironment } from './task-environment.js'
import { findTools } from './tools/find-tools.js'
import { resolveTools, toolsSentence } from './tools/resolve-tools.js'
import { versionFiles, type WantedTool, wantedTools } from './tools/wanted-tools.js'

const setupPath = '.corral/setup'

/** What files of the repository ask for, before the sandbox has been looked at. */
export interface DeclaredEnvironment {
  status: Partial<Pick<AgentTaskStatus, 'environment' | 'checks'>>
  wanted: WantedTool[]
  /** Files that decide what set-up leaves; all known lock files where unset. */
  keyFiles?: string[]
  warnings: TaskWarning[]
  events: TaskEventBody[]
}

/**
 * Reads what the repository says about its environment, from the commit the work started from: its own file, else one of
 * another tool where the task brings no set-up and the repository has none of ours, and files that name versions of tools.
 */
export async function declaredEnvironment(
  context: SandboxContext,
  { environmentFile, baseFiles }: Pick<PreparedRepository, 'environmentFile' | 'baseFiles'>,
): Promise<DeclaredEnvironment> {
  const { spec } = context.task
  const files = (await baseFiles?.read([setupPath, ...foreignFiles])) ?? []
  const hasOwn = environmentFile !== undefined || spec.setup !== undefined || files.some(isSetupScript)
  const own = environmentFile && {
    source: environmentFilePath,
    request: parseEnvironmentFile(environmentFile.text, environmentFilePath, spec.part),
    leftOut: [],
  }
  if (spec.part !== undefined && !own)
    throw new TaskError(
      'InvalidTask',
      `the repository has no ${environmentFilePath}, so there is no part "${spec.part}"`,
    )
  const isScript = context.environments !== undefined && spec.setup === undefined && files.some(isSetupScript)
  const found = own ?? (isScript ? scriptEnvironment : hasOwn ? undefined : readForeignEnvironment(files))
  const commit = baseFiles?.commit ?? environmentFile?.commit ?? ''
  const granted = await context.grantedTo(spec.repository.url)
  const limits = found?.request.resources ? await context.sandboxLimits() : {}
  return {
    status: found ? taskEnvironment(context.task, { ...found, commit }, granted, limits) : {},
    wanted: await toolsWanted(found, baseFiles),
    ...(found?.request.key ? { keyFiles: found.request.key } : {}),
    warnings:
      found && found.leftOut.length > 0
        ? [taskWarning('EnvironmentPartly', { detail: `${found.source}: ${found.leftOut.join(', ')}` })]
        : [],
    events: found
      ? [{ type: 'stage', stage: 'repository', state: 'progress', detail: `environment from ${found.source}` }]
      : [],
  }
}

const isSetupScript = ({ path }: { path: string }): boolean => path === setupPath

/** A repository with nothing but a set-up script: the script is found and run where it lies. */
const scriptEnvironment: { source: string; request: EnvironmentRequest; leftOut: string[] } = {
  source: setupPath,
  request: {
    ...{ env: {}, path: [], checks: [], tools: {}, start: [], services: [], secrets: [], parts: [] },
    egress: { setup: [packagesGrant], agent: [] },
  },
  leftOut: [],
}

async function toolsWanted(
  found: { source: string; request: EnvironmentRequest } | undefined,
  baseFiles: PreparedRepository['baseFiles'],
): Promise<WantedTool[]> {
  const directory = found?.request.directory?.replace(/\/+$/, '')
  const paths = [...(directory ? versionFiles.map((name) => `${directory}/${name}`) : []), ...versionFiles]
  return wantedTools(found?.request.tools ?? {}, found?.source ?? '', (await baseFiles?.read(paths)) ?? [])
}

/**
 * Gives the sandbox the limits and the root file system the environment asks for, before the line to it is opened. Safe to
 * repeat.
 */
export async function withSandbox<T extends Omit<DeclaredEnvironment, 'wanted'>>(
  declared: T,
  context: Pick<SandboxContext, 'applyResources' | 'applyImage'>,
): Promise<T> {
  return withImage(await withLimits(declared, context), context)
}

async function withImage<T extends Omit<DeclaredEnvironment, 'wanted'>>(
  declared: T,
  context: Pick<SandboxContext, 'applyImage'>,
): Promise<T> {
  const image = declared.status.environment?.image
  if (!image) return declared
  if (!(await context.applyImage(image))) {
    const warning = taskWarning('EnvironmentPartly', {
      detail: `image (${image}): the template of the cluster decides`,
    })
    return { ...declared, warnings: [...declared.warnings, warning] }
  }
  const event = { type: 'stage', stage: 'repository', state: 'progress', detail: `root file system: ${image}` } as const
  return { ...declared, events: [...declared.events, event] }
}

async function withLimits<T extends Omit<DeclaredEnvironment, 'wanted'>>(
  declared: T,
  context: Pick<SandboxContext, 'applyResources'>,
): Promise<T> {
  const resources = declared.status.environment?.resources
  if (!resources) return declared
  const detail = resourcesText(resources)
  if (!(await context.applyResources(resources))) {
    const warning = taskWarning('EnvironmentPartly', {
      detail: `resources (${detail}): the template of the cluster decides`,
    })
    return { ...declared, warnings: [...declared.warnings, warning] }
  }
  const event = { type: 'stage', stage: 'repository', state: 'progress', detail: `limits: ${detail}` } as const
  return { ...declared, events: [...declared.events, event] }
}

/** The declared environment with the toolchains of this sandbox. Throws `ToolMissing` where the environment file's own are not there. */
export async function withTools(
  declared: DeclaredEnvironment,
  daemon: DaemonClient,
  { task, signal }: Pick<SandboxContext, 'task' | 'signal'>,
  commit: string,
): Promise<Omit<DeclaredEnvironment, 'wanted'>> {
  const { wanted, ...rest } = declared
  if (wanted.length === 0) return rest
  const names = wanted.map(({ name }) => name)
  const { tools, warnings, missing } = resolveTools(wanted, await findTools(daemon, task.metadata.uid, names, signal))
  if (missing) throw new TaskError('ToolMissing', missing.message, { hint: `${missing.hint}, then retry.` })
  return {
    ...rest,
    status: {
      ...rest.status,
      ...(tools.length > 0 ? { environment: { commit, ...rest.status.environment, tools } } : {}),
    },
    warnings: [...rest.warnings, ...warnings],
    events: [
      ...rest.events,
      ...(tools.length > 0
        ? [{ type: 'stage', stage: 'repository', state: 'progress', detail: `tools: ${toolsSentence(tools)}` } as const]
        : []),
    ],
  }
}

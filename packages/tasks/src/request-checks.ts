import { posix } from 'node:path'
import { findAgent } from '@corral/agents'
import type { CompleteTaskRequest, CreateTaskRequest } from '@corral/protocol'
import type { AgentTask } from '@corral/resources'
import { checkMcpServers } from './agent-spec.js'
import { checkProvider } from './broker/model-providers.js'
import { checkTier } from './project/sandbox-choice.js'
import { gitLfsMissing } from './repository/lfs-objects.js'
import { checkLocalRequest, localPathOf } from './repository/local-repository.js'
import { parseRepositoryUrl } from './repository/repository-url.js'
import { TaskError } from './task-error.js'
import type { TaskServiceOptions } from './task-service-options.js'

/** Refuses what can be known to fail now, before the user waits for a sandbox. */
export async function checkRequest(
  request: CompleteTaskRequest,
  options: Omit<TaskServiceOptions, 'client'>,
): Promise<void> {
  const location = parseRepositoryUrl(request.repo)
  checkMcpServers(request.mcp_servers ?? [], request.egress ?? [])
  checkTier(request.minimum_tier, options.isolation)
  checkFiles(request.files ?? [])
  if (request.sandbox?.pool && request.sandbox.template)
    throw new TaskError('Invalid', 'sandbox: name a pool or a template, not both')
  if ((request.egress?.length || request.setup_egress?.length) && options.hasEgressByName === false)
    throw new TaskError(
      'EgressUnsupported',
      'egress: the nodes of this cluster do not let a task reach addresses by name',
    )
  const path = localPathOf(location)
  if (path === undefined) {
    if (request.lfs && (await options.hasGitLfs?.()) === false) throw gitLfsMissing()
    return
  }
  if (!options.localRepositories)
    throw new TaskError('LocalRepositoryRefused', `${path} is on a disk of the server, which takes remote ones only`, {
      hint: 'Give an https:// or ssh:// address, or start the server with --local-repositories.',
    })
  await checkLocalRequest(path, { baseBranch: request.base_branch, newBranch: request.new_branch })
}

/** Refuses files of which one takes the place of another, or of a directory that another needs. */
function checkFiles(files: readonly { path: string }[]): void {
  const paths = files.map(({ path }) => path)
  const taken = new Set(paths)
  const twice = paths.find((path, index) => paths.indexOf(path) !== index)
  if (twice !== undefined) throw new TaskError('Invalid', `files: "${twice}" is given twice`)
  for (const path of paths)
    for (let above = posix.dirname(path); above !== '.'; above = posix.dirname(above))
      if (taken.has(above))
        throw new TaskError('Invalid', `files: "${above}" cannot be a file and the directory of "${path}"`)
}

const capabilityVerbs = { plan: 'plan', ask: 'ask', mcp: 'use MCP servers' } as const

/** Refuses what the agent cannot do of what the request asks for. */
export function checkCapabilities(agent: AgentTask['spec']['agent'], request: CompleteTaskRequest): void {
  if (request.mode === 'plan') checkCapability(agent, 'plan', 'mode')
  if (request.ask && request.ask !== 'never') checkCapability(agent, 'ask', 'ask')
  if (request.mcp_servers?.length) checkCapability(agent, 'mcp', 'mcp_servers')
}

/** Refuses what the agent cannot, such as a plan of one that could change something meanwhile. */
function checkCapability(
  { name }: AgentTask['spec']['agent'],
  capability: 'plan' | 'ask' | 'mcp',
  field: string,
): void {
  const able = findAgent(name)?.capabilities[capability]
  if (able === undefined || able === true) return
  throw new TaskError('Invalid', `${field}: agent "${name}" cannot ${capabilityVerbs[capability]}: ${able.no}`, {
    hint: 'docs/agents.md lists what every agent can do.',
  })
}

/** Refuses an agent that is not there, or that has no key for its model. */
export async function checkAgent(
  agent: AgentTask['spec']['agent'],
  sandbox: CreateTaskRequest['sandbox'],
  { isInstalled, providers }: Pick<TaskServiceOptions, 'isInstalled' | 'providers'>,
): Promise<void> {
  const adapter = findAgent(agent.name)
  if (!adapter) return
  if (agent.provider && providers) await checkProvider(adapter, agent.provider, providers)
  const program = adapter.install?.program
  // A pool or template of the user's own may bring the agent in its image.
  const isOurs = !sandbox?.pool && !sandbox?.template
  if (program && isOurs && (await isInstalled?.(program)) === false)
    throw new TaskError('AgentNotInstalled', `agent "${agent.name}" is not installed`, {
      hint: `Install it with \`corral agent install ${agent.name}\`, or give any program with --command.`,
    })
  const name = agent.provider ?? adapter.speaks?.[0]
  const provider = name && (await providers?.find(name))
  if (provider && !(await providers?.isUsable(provider)))
    throw new TaskError('ModelKeyMissing', `agent "${agent.name}" needs a key for ${provider.title} and none is set`, {
      hint: `Set it with \`corral secret set ${provider.secret}\`; it stays behind the broker of the platform.`,
    })
}

/** Who commits where the request does not say, so that the task keeps it whatever is configured later. */
export async function identityFor(
  { repo, author, committer }: CompleteTaskRequest,
  { findIdentity }: Pick<TaskServiceOptions, 'findIdentity'>,
): Promise<Pick<CreateTaskRequest, 'author' | 'committer'>> {
  if (author && committer) return {}
  const identity = await findIdentity?.(localPathOf(parseRepositoryUrl(repo)))
  return identity ? { author: identity, committer: identity } : {}
}

import {
  type AgentAdapter,
  type AgentOptions,
  agentAdapters,
  findAgent,
  isRemote,
  type McpServer,
} from '@corral/agents'
import { type AgentChoice, agentChoiceOf, issueWords } from '@corral/protocol'
import type { AgentTask, AgentTaskSpec } from '@corral/resources'
import { TaskError } from './task-error.js'

type AgentSpec = AgentTaskSpec['agent']

/** Options every kind of agent may have: fields of their own in the spec. The others lie in `options` as JSON. */
const commonOptions = ['command', 'model', 'effort', 'args', 'provider'] as const

/** The agent of a request, checked by its adapter, as a task's spec holds it. `UnknownAgent` or `Invalid` else. */
export function agentSpecOf(choice: AgentChoice): AgentSpec {
  const { name, ...given } = agentChoiceOf(choice)
  const options = checkedOptions(knownAgent(name), given)
  const common: Partial<Record<string, unknown>> = {}
  const own: Record<string, string> = {}
  for (const [option, value] of Object.entries(options)) {
    if (value === undefined) continue
    if ((commonOptions as readonly string[]).includes(option)) common[option] = value
    else own[option] = JSON.stringify(value)
  }
  return { name, ...common, ...(Object.keys(own).length > 0 ? { options: own } : {}) }
}

/** The choice that made a spec: what a retry asks for and the API shows. */
export function agentChoiceFrom({ name, options = {}, ...common }: AgentSpec): {
  name: string
  [option: string]: unknown
} {
  const own = Object.entries(options).map(([option, value]) => [option, parsed(value)])
  return { name, ...common, ...Object.fromEntries(own) }
}

/** The adapter and the options of a task, also of one that was made with kubectl. */
export function agentOf(task: AgentTask): { adapter: AgentAdapter; options: AgentOptions } {
  const { name, ...given } = agentChoiceFrom(task.spec.agent)
  const adapter = knownAgent(name)
  return { adapter, options: checkedOptions(adapter, given) }
}

/** The name of the provider or endpoint a task's agent uses; undefined where it uses no model. */
export function providerNameOf(task: AgentTask): string | undefined {
  return task.spec.agent.provider ?? findAgent(task.spec.agent.name)?.speaks?.[0]
}

export function mcpServersOf({ spec }: AgentTask): McpServer[] {
  return (spec.mcpServers ?? []).flatMap(({ name, command, args, env, url, headers }): McpServer[] => {
    if (url !== undefined) return [{ name, url, headers }]
    return command === undefined ? [] : [{ name, command, args, env }]
  })
}

/** An address outside is reached only where the task was granted it, so that one without a grant is a mistake. */
export function checkMcpServers(servers: readonly McpServer[], egress: readonly string[]): void {
  const names = servers.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined)
    throw new TaskError('Invalid', `mcp_servers: two servers are named "${twice}"`, {
      hint: 'Give each a name of its own.',
    })
  for (const server of servers) {
    if (!isRemote(server)) continue
    const { hostname, port, protocol } = new URL(server.url)
    const address = `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`
    if (!egress.some((rule) => isCoveredBy(address, rule)))
      throw new TaskError('Invalid', `mcp_servers: "${server.name}" is at ${address}, which the task may not reach`, {
        hint: `Add "${address}" to egress (\`--allow ${address}\`).`,
      })
  }
}

function isCoveredBy(address: string, rule: string): boolean {
  const wanted = address.toLowerCase()
  const granted = rule.toLowerCase()
  return granted.startsWith('*.') ? wanted.endsWith(granted.slice(1)) : wanted === granted
}

function knownAgent(name: string): AgentAdapter {
  const adapter = findAgent(name)
  if (adapter) return adapter
  throw new TaskError('UnknownAgent', `there is no agent "${name.slice(0, 100)}"`, {
    hint: `Use one of: ${[...agentAdapters.keys()].join(', ')}.`,
  })
}

function checkedOptions(adapter: AgentAdapter, given: object): AgentOptions {
  const checked = adapter.options.safeParse(given)
  if (checked.success) return checked.data
  throw new TaskError('Invalid', optionProblem(adapter.name, checked.error.issues), {
    hint: 'docs/agents.md lists the options of every agent.',
  })
}

/** `agent codex: command: is required`, or where the whole is meant `agent codex: there is no field "x"`. */
function optionProblem(agent: string, issues: Parameters<typeof issueWords>[0]): string {
  const [problem = ': is not valid'] = issueWords(issues, '')
  return `agent ${agent}${problem.startsWith(':') ? '' : ': '}${problem}`
}

function parsed(value: string): unknown {
  try {
    return JSON.parse(value)
  } catch {
    // Written by hand with kubectl: a bare word means itself.
    return value
  }
}

/** What an agent may be able to do; the generic code asks this table and never the agent's name. */
export const agentCapabilityNames = ['resume', 'plan', 'steer', 'usage', 'mcp', 'acp'] as const
export type AgentCapability = (typeof agentCapabilityNames)[number]

/** `true`, or why not. */
export type AgentCapabilities = Readonly<Record<AgentCapability, true | { readonly no: string }>>

/** What each capability means, for documents and errors. */
export const capabilitySummaries: Readonly<Record<AgentCapability, string>> = {
  resume: 'goes on with the session of an earlier task',
  plan: 'plans without being able to change anything',
  steer: 'takes a message while it works',
  usage: 'its model calls are counted and priced by the broker',
  mcp: 'uses the MCP servers of the request',
  acp: 'is spoken to over the Agent Client Protocol',
}

/** What tasks can make use of today. The other capabilities are ready in the adapters and wait for the API. */
export const offeredCapabilities: ReadonlySet<AgentCapability> = new Set<AgentCapability>([
  'resume',
  'plan',
  'usage',
  'mcp',
  'acp',
])

export const isCapable = (capabilities: AgentCapabilities, name: AgentCapability): boolean =>
  capabilities[name] === true

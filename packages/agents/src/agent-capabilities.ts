/** What an agent may be able to do; the generic code asks this table and never the agent's name. */
export const agentCapabilityNames = ['resume', 'plan', 'steer', 'ask', 'usage', 'mcp', 'acp'] as const
export type AgentCapability = (typeof agentCapabilityNames)[number]

/** `true`, or why not. */
export type AgentCapabilities = Readonly<Record<AgentCapability, true | { readonly no: string }>>

/** What each capability means, for documents and errors. */
export const capabilitySummaries: Readonly<Record<AgentCapability, string>> = {
  resume: 'goes on with the session of an earlier task',
  plan: 'plans without being able to change anything',
  steer: 'takes a message while it works',
  ask: 'asks for permission or input, and waits for the answer',
  usage: 'its model calls are counted and priced by the broker',
  mcp: 'uses the MCP servers of the request',
  acp: 'is spoken to over the Agent Client Protocol',
}

export const isCapable = (capabilities: AgentCapabilities, name: AgentCapability): boolean =>
  capabilities[name] === true

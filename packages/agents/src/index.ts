export type {
  AgentAdapter,
  AgentAnswer,
  AgentExit,
  AgentPackage,
  AgentParser,
  AgentQuestion,
  AgentSessions,
  AgentTaskInput,
  AgentVerdict,
  BrokerAccess,
  InboxEntry,
  LaunchFile,
  LaunchSpec,
} from './agent-adapter.js'
export {
  type AgentCapabilities,
  type AgentCapability,
  agentCapabilityNames,
  capabilitySummaries,
  isCapable,
} from './agent-capabilities.js'
export type { AgentOptions } from './agent-options.js'
export { agentAdapters, commandLineAgentName, defaultAgentName, findAgent } from './agent-registry.js'
export { renderAgentsMarkdown } from './agents-markdown.js'
export { agentsBinDirectory } from './launch-script.js'
export { isRemote, type McpServer } from './mcp-server.js'
export { OutputJoiner } from './output-joiner.js'
export { type Endpoint, endpointProvider, endpointSchema, endpointSecret } from './providers/endpoint.js'
export { costOf, type ModelPrice, type PriceTable } from './providers/model-price.js'
export type { HeaderRecord, Provider } from './providers/provider.js'
export { findProvider, providers } from './providers/provider-registry.js'
export { settleUsage, type TokenUsage, type UsageMeter } from './providers/usage-meter.js'

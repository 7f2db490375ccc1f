export type {
  AgentAdapter,
  AgentExit,
  AgentParser,
  AgentTaskInput,
  AgentVerdict,
  LaunchFile,
  LaunchSpec,
} from './agent-adapter.js'
export { agentAdapters, findAgent } from './agent-registry.js'
export { agentsBinDirectory, claudeAgent } from './claude-agent.js'
export { commandAgent, outputEvent } from './command-agent.js'
export { type LinePiece, LineSplitter } from './line-splitter.js'
export { costOf, type ModelPrice, modelPrices } from './model-prices.js'

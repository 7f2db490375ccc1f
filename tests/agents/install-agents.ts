import { agentScripts } from './agent-scripts.js'
import { installIntoCache } from './installed-agents.js'

/** Before any file: their tests run side by side and find the programs in place. */
export default async function installAgents(): Promise<void> {
  await installIntoCache(...agentScripts.map(({ agent }) => agent))
}

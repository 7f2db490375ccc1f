import type { AgentInfo } from '@corral/protocol'
import { signal } from '@preact/signals'
import { api } from './api.js'

/** The agents the platform knows; empty until they are asked for. */
export const agents = signal<readonly AgentInfo[]>([])

export async function loadAgents(): Promise<void> {
  agents.value = (await api.agents()).agents
}

import type { AgentSandboxProvider } from '@corral/agent-sandbox-sdk'
import type { AgentTask } from '@corral/resources'
import type { PackageClients } from '../environment/package-clients.js'
import type { SandboxAccess } from '../sandbox/sandbox-session.js'

/** Where sandboxes of tasks are: the cluster that keeps the tasks, or another one a provider leads to. */
export interface SandboxPlace {
  /** The provider's name, as tasks say it. */
  readonly name: string
  readonly provider: AgentSandboxProvider
  /** Of claims, Sandboxes and pods there. */
  readonly namespace: string
  readonly sandboxes: SandboxAccess & { close(): Promise<void> }
  /** How agents there reach the model broker. */
  readonly brokerUrl: string
  readonly hasEgressByName: boolean
  readonly packageClients: PackageClients | undefined
  /** The isolation tier of its nodes, where that is known. */
  readonly isolation: string | undefined
  /** The pool of tasks that name none; made where it is missing and the provider names none of its own. */
  ensurePool(): Promise<string>
}

/** The places beside the platform's own, by the names of their providers. */
export interface SandboxPlaces {
  /** The platform's own, as tasks and settings call it. */
  readonly own: string
  /** The provider of tasks that name none. */
  readonly fallback: string | undefined
  /** Undefined where no provider has this name. */
  find(name: string): Promise<SandboxPlace | undefined>
  /** Names of all of them, the platform's own first. */
  names(): Promise<string[]>
  close(): Promise<void>
}

/** The provider whose sandbox a task has or wants; undefined for the platform's own. */
export function foreignProviderOf({ spec }: Pick<AgentTask, 'spec'>): string | undefined {
  return spec.sandbox?.provider
}

import { askedEgress, type Check, type EnvironmentRequest } from '@corral/protocol'
import {
  type AgentTask,
  type AgentTaskSpec,
  type AgentTaskStatus,
  resourcesBeyond,
  type SandboxResources,
} from '@corral/resources'
import { TaskError } from '../task-error.js'
import { serviceVariables } from './services/ready-made.js'

/** What the file gives a task, as it is kept in its status. */
export type TaskEnvironment = Pick<AgentTaskStatus, 'checks'> & {
  environment: NonNullable<AgentTaskStatus['environment']>
}

/** What the operator allows a repository. */
export interface GrantedToRepository {
  egress: readonly string[]
  /** Names of secrets. */
  secrets: readonly string[]
  /** Limits it may ask for at most, above its template's. */
  resources?: SandboxResources | undefined
  /** Names of images its sandboxes may have. */
  images?: readonly string[] | undefined
}

/**
 * The environment a task gets from a file of its repository: what it asks for, where nothing of it is missing a grant. What
 * the task itself was allowed counts as well. `limits` are those of its template. Pure.
 */
export function taskEnvironment(
  { spec }: Pick<AgentTask, 'spec'>,
  file: { request: EnvironmentRequest; source: string; commit: string },
  granted: GrantedToRepository,
  limits: SandboxResources = {},
): TaskEnvironment {
  const { request } = file
  const missing = {
    egress: missingEgress(spec, request, granted),
    secrets: missingSecrets(request, granted),
    resources: missingResources(request, granted, limits),
    images: missingImages(request, granted),
  }
  const words = missingWords(missing)
  if (words.length > 0)
    throw new TaskError(
      'EnvironmentNotGranted',
      `${file.source} asks for ${words.join(', ')}, which was not granted to this repository`,
      { hint: `Read the file, then: ${grantCommand(spec.repository.url, missing)}` },
    )
  const { setup, update, path, checks, egress, start, services, secrets, resources, image } = request
  const env = { ...serviceVariables(services), ...request.env }
  return {
    environment: {
      commit: file.commit,
      source: file.source,
      ...(setup ? { setup } : {}),
      ...(update ? { update } : {}),
      ...(Object.keys(env).length > 0 ? { env } : {}),
      ...(path.length > 0 ? { path } : {}),
      ...(services.length > 0 ? { services } : {}),
      ...(start.length > 0 ? { start } : {}),
      ...(secrets.length > 0 ? { secrets } : {}),
      ...(image ? { image } : {}),
      ...(resources ? { resources } : {}),
      ...(egress.setup.length > 0 ? { setupEgress: egress.setup } : {}),
      ...(egress.agent.length > 0 ? { egress: egress.agent } : {}),
    },
    ...(checks.length > 0 ? { checks: { declared: checks.map(toSpec) } } : {}),
  }
}

function missingEgress(spec: AgentTaskSpec, request: EnvironmentRequest, granted: GrantedToRepository): string[] {
  const allowed = new Set([...granted.egress, ...(spec.egress ?? [])].map((rule) => rule.toLowerCase()))
  // A grant for set-up alone is none for the agent.
  const allowedInSetup = new Set([...allowed, ...(spec.setupEgress ?? []).map((rule) => rule.toLowerCase())])
  const forAgent = new Set(askedEgress({ egress: { setup: [], agent: request.egress.agent } }))
  return askedEgress(request).filter((rule) => !(forAgent.has(rule) ? allowed : allowedInSetup).has(rule))
}

export function missingSecrets(
  { secrets }: Pick<EnvironmentRequest, 'secrets'>,
  granted: Pick<GrantedToRepository, 'secrets'>,
): string[] {
  return secrets.map(({ name }) => name).filter((name) => !granted.secrets.includes(name))
}

/** What of the limits it asks for is above both its template's and what was granted. */
export function missingResources(
  { resources = {} }: Pick<EnvironmentRequest, 'resources'>,
  granted: Pick<GrantedToRepository, 'resources'>,
  limits: SandboxResources,
): SandboxResources {
  const above = resourcesBeyond(resources, limits)
  const beyond = resourcesBeyond(above, granted.resources ?? {})
  // What no grant speaks of is not granted.
  return Object.fromEntries(
    Object.entries(above).filter(([name]) => name in beyond || !(name in (granted.resources ?? {}))),
  )
}

export function missingImages(
  { image }: Pick<EnvironmentRequest, 'image'>,
  { images = [] }: Pick<GrantedToRepository, 'images'>,
): string[] {
  return image === undefined || images.includes(image) ? [] : [image]
}

/** What an operator has not granted yet. */
export interface MissingGrants {
  egress: readonly string[]
  secrets: readonly string[]
  resources?: SandboxResources
  images?: readonly string[]
}

/** The same in words for people. */
export function missingWords({ egress, secrets, resources = {}, images = [] }: MissingGrants): string[] {
  return [
    ...egress,
    ...secrets.map((name) => `the secret ${name}`),
    ...Object.entries(resources).map(([name, amount]) => `${name} ${amount}`),
    ...images.map((name) => `the image ${name}`),
  ]
}

/** What an operator runs to allow it. */
export function grantCommand(
  repository: string,
  { egress, secrets, resources = {}, images = [] }: MissingGrants,
): string {
  const words = [
    repository,
    ...egress,
    ...secrets.flatMap((name) => ['--secret', name]),
    ...Object.entries(resources).flatMap(([name, amount]) => [`--${name}`, amount]),
    ...images.flatMap((name) => ['--image', name]),
  ]
  return `corral env grant ${words.map(shellWord).join(' ')}`
}

function toSpec({ name, command, timeout_seconds }: Check): NonNullable<AgentTaskSpec['checks']>[number] {
  return { name, command, ...(timeout_seconds ? { timeoutSeconds: timeout_seconds } : {}) }
}

export const shellWord = (text: string): string =>
  /^[A-Za-z0-9_./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

import type { Container, EnvVar, Pod } from '@corral/resources'
import { fieldValue, type PodFacts, resourceValue } from './downward-api.js'
import { expandVariables } from './expand-variables.js'
import { LaunchError } from './launch-error.js'

/** The ConfigMaps and Secrets a pod names, read beforehand; an absent one is not in the map. */
export interface ConfigSources {
  configMaps: ReadonlyMap<string, Readonly<Record<string, Uint8Array>>>
  secrets: ReadonlyMap<string, Readonly<Record<string, Uint8Array>>>
}

export interface EnvironmentInput {
  pod: Pod
  container: Container
  /** What the image brings; everything else goes over it. */
  base: Readonly<Record<string, string>>
  sources: ConfigSources
  facts: PodFacts
}

/** The container's environment: image, then `envFrom`, then `env` in order with `$(NAME)` expanded. */
export function containerEnvironment(input: EnvironmentInput): Record<string, string> {
  const env: Record<string, string> = { ...input.base }
  for (const source of input.container.envFrom ?? []) Object.assign(env, environmentFrom(source, input))
  for (const variable of input.container.env ?? []) {
    const value = variableValue(variable, env, input)
    if (value !== undefined) env[variable.name] = value
  }
  return env
}

type EnvFrom = NonNullable<Container['envFrom']>[number]

function environmentFrom(source: EnvFrom, { sources }: EnvironmentInput): Record<string, string> {
  const reference = source.configMapRef ?? source.secretRef
  if (!reference) return {}
  const name = reference.name ?? ''
  const data = source.configMapRef ? sources.configMaps.get(name) : sources.secrets.get(name)
  if (!data) {
    if (reference.optional) return {}
    throw missingObject(source.configMapRef ? 'configmap' : 'secret', name)
  }
  const named = Object.entries(data).map(([key, value]) => [`${source.prefix ?? ''}${key}`, text(value)] as const)
  return Object.fromEntries(named.filter(([key]) => isVariableName(key)))
}

function variableValue(
  variable: EnvVar,
  env: Readonly<Record<string, string>>,
  { pod, container, sources, facts }: EnvironmentInput,
): string | undefined {
  const from = variable.valueFrom
  if (!from) return expandVariables(variable.value ?? '', env)
  if (from.fieldRef) return fieldValue(pod, from.fieldRef.fieldPath, facts)
  if (from.resourceFieldRef) {
    const name = from.resourceFieldRef.containerName
    return resourceValue(containerNamed(pod, name) ?? container, from.resourceFieldRef, facts)
  }
  const namespace = pod.metadata?.namespace ?? ''
  if (from.configMapKeyRef) return keyValue('ConfigMap', sources.configMaps, from.configMapKeyRef, namespace)
  if (from.secretKeyRef) return keyValue('Secret', sources.secrets, from.secretKeyRef, namespace)
  throw new LaunchError(
    'CreateContainerConfigError',
    `environment variable ${variable.name} has no source this node reads`,
  )
}

function keyValue(
  kind: 'ConfigMap' | 'Secret',
  objects: ConfigSources['configMaps'],
  reference: { name?: string; key: string; optional?: boolean },
  namespace: string,
): string | undefined {
  const name = reference.name ?? ''
  const data = objects.get(name)
  const value = data?.[reference.key]
  if (value) return text(value)
  if (reference.optional) return undefined
  if (!data) throw missingObject(kind.toLowerCase(), name)
  throw new LaunchError(
    'CreateContainerConfigError',
    `couldn't find key ${reference.key} in ${kind} ${namespace}/${name}`,
  )
}

export function containerNamed(pod: Pod, name: string | undefined): Container | undefined {
  return [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])].find((entry) => entry.name === name)
}

const missingObject = (kind: string, name: string): LaunchError =>
  new LaunchError('CreateContainerConfigError', `${kind} "${name}" not found`)

const isVariableName = (name: string): boolean => name.length > 0 && !/[=\0]/.test(name)
const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8')

import type { KubeClient } from '@corral/kube'
import { ConfigMaps, type Pod, type PodSpec, Secrets } from '@corral/resources'
import type { ConfigSources } from '../launch/environment.js'

/** Names of the ConfigMaps and Secrets that a pod's environment and volumes refer to. */
export function referencedConfig(spec: PodSpec): { configMaps: Set<string>; secrets: Set<string> } {
  const configMaps = new Set<string>()
  const secrets = new Set<string>()
  const add = (set: Set<string>, name: string | undefined): void => void (name && set.add(name))
  for (const container of [...(spec.initContainers ?? []), ...spec.containers]) {
    for (const source of container.envFrom ?? []) {
      add(configMaps, source.configMapRef?.name)
      add(secrets, source.secretRef?.name)
    }
    for (const variable of container.env ?? []) {
      add(configMaps, variable.valueFrom?.configMapKeyRef?.name)
      add(secrets, variable.valueFrom?.secretKeyRef?.name)
    }
  }
  for (const volume of spec.volumes ?? []) {
    add(configMaps, volume.configMap?.name)
    add(secrets, volume.secret?.secretName)
    for (const source of volume.projected?.sources ?? []) {
      add(configMaps, source.configMap?.name)
      add(secrets, source.secret?.name)
    }
  }
  return { configMaps, secrets }
}

/** Reads what the pod refers to. An object that does not exist is simply not in the answer. */
export async function loadConfigSources(client: KubeClient, pod: Pod, signal: AbortSignal): Promise<ConfigSources> {
  const namespace = pod.metadata?.namespace ?? ''
  const names = referencedConfig(pod.spec!)
  const configMaps = new Map<string, Record<string, Uint8Array>>()
  const secrets = new Map<string, Record<string, Uint8Array>>()
  await Promise.all([
    ...[...names.configMaps].map(async (name) => {
      const object = await client.find(ConfigMaps, { namespace, name }, { signal })
      if (object) configMaps.set(name, { ...textBytes(object.data), ...base64Bytes(object.binaryData) })
    }),
    ...[...names.secrets].map(async (name) => {
      const object = await client.find(Secrets, { namespace, name }, { signal })
      if (object) secrets.set(name, base64Bytes(object.data))
    }),
  ])
  return { configMaps, secrets }
}

function textBytes(data: Record<string, string> | undefined): Record<string, Uint8Array> {
  return mapValues(data, (value) => Buffer.from(value, 'utf8'))
}

function base64Bytes(data: Record<string, string> | undefined): Record<string, Uint8Array> {
  return mapValues(data, (value) => Buffer.from(value, 'base64'))
}

function mapValues<T, R>(record: Record<string, T> | undefined, map: (value: T) => R): Record<string, R> {
  return Object.fromEntries(Object.entries(record ?? {}).map(([key, value]) => [key, map(value)]))
}

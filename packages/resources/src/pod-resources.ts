import type { Container, Pod } from './generated/core-types.js'
import { quantityToNumber } from './quantity.js'

/**
 * On a Pod of one container, or in a claim's `additionalPodMetadata`: limits in place of the container's own, at its start or
 * while it runs: `cpu=2, memory=8Gi, disk=20Gi`.
 */
export const resourcesAnnotation = 'corral.dev/resources'

/**
 * The pod condition that says how the annotation was followed; its message repeats the annotation where it is in force.
 * - `Applied` (True); `Unenforced` (True): this machine holds pods to no limits of memory and CPU, see `corral doctor`.
 * - `Invalid` (False): cannot be read, or the pod has several containers. `Infeasible` (False): more than the node has.
 * - `Failed` (False): the message says why. Tried again.
 */
export const resourcesCondition = 'corral.dev/Resources'

export const resourceNames = ['cpu', 'memory', 'disk'] as const
export type ResourceName = (typeof resourceNames)[number]

/** Kubernetes quantities by name. */
export type SandboxResources = Partial<Record<ResourceName, string>>

/** Below this a sandbox's own processes end. */
export const leastResources: Readonly<Record<ResourceName, string>> = { cpu: '100m', memory: '256Mi', disk: '64Mi' }

export function isResourceAmount(name: ResourceName, text: string): boolean {
  return (
    /^[0-9]{1,9}(\.[0-9]{1,3})?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/.test(text) && amount(text) >= amount(leastResources[name])
  )
}

const amount = (text: string | number): number => quantityToNumber(text) ?? Number.NaN

/** The value of the annotation. */
export function resourcesText(resources: SandboxResources): string {
  return resourceNames.flatMap((name) => (resources[name] ? [`${name}=${resources[name]}`] : [])).join(', ')
}

/** Reads the annotation; undefined where it is not of that form. Pure. */
export function parseResources(text: string): SandboxResources | undefined {
  const resources: SandboxResources = {}
  for (const part of text.split(',').map((each) => each.trim())) {
    const [, name, value = ''] = /^(cpu|memory|disk)=(.+)$/.exec(part) ?? []
    if (name === undefined || !isResourceAmount(name as ResourceName, value)) return undefined
    resources[name as ResourceName] = value
  }
  return resources
}

/** What of `asked` is more than `limits` has; what has no limit is as large as can be. Pure. */
export function resourcesBeyond(asked: SandboxResources, limits: SandboxResources): SandboxResources {
  return Object.fromEntries(
    Object.entries(asked).filter(([name, value]) => {
      const limit = limits[name as ResourceName]
      return limit !== undefined && amount(value) > amount(limit)
    }),
  )
}

const limitNames: Readonly<Record<ResourceName, string>> = { cpu: 'cpu', memory: 'memory', disk: 'ephemeral-storage' }

/** The limits of a pod's first container, as the annotation names them. Pure. */
export function resourcesOfPod(pod: Pod): SandboxResources {
  const limits = pod.spec?.containers[0]?.resources?.limits ?? {}
  return Object.fromEntries(
    resourceNames.flatMap((name) => {
      const value = limits[limitNames[name]]
      return value === undefined ? [] : [[name, String(value)]]
    }),
  )
}

/** The pod with these limits in place of its one container's and its own. Pure. */
export function withResources(pod: Pod, resources: SandboxResources): Pod {
  if (!pod.spec) return pod
  const given = Object.fromEntries(
    Object.entries(resources).map(([name, value]) => [limitNames[name as ResourceName], value]),
  )
  const { containers, resources: whole } = pod.spec
  const changed = containers.map(
    (container): Container => ({
      ...container,
      resources: { ...container.resources, limits: { ...container.resources?.limits, ...given } },
    }),
  )
  const own = whole?.limits ? { resources: { ...whole, limits: { ...whole.limits, ...given } } } : {}
  return { ...pod, spec: { ...pod.spec, ...own, containers: changed } }
}

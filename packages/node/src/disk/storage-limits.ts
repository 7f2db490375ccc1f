import type { Pod } from '@corral/resources'
import { quantityValue } from '../launch/amounts.js'
import type { PodUsage, Usage } from './pod-usage.js'

/** What a pod that names no limit may take: workspace, HOME, /tmp and logs together. */
export const defaultPodStorage = { bytes: '10Gi', inodes: 1_048_576 } as const

/** Files, directories and links the pod may have, where that is not the default. */
export const inodesAnnotation = 'corral.dev/inodes'
/**
 * How long a pod that took too much is kept with nothing but the main processes of its containers, so that what it made
 * can be taken out. Without it the pod is evicted at once, as a kubelet does.
 */
export const graceAnnotation = 'corral.dev/eviction-grace-seconds'
const longestGraceSeconds = 600

interface Limit {
  name: string
  bytes: number
  /** As it was written. */
  text: string
}

export interface StorageLimits {
  pod: Limit
  inodes: number
  /** Each emptyDir with a `sizeLimit`. */
  volumes: readonly Limit[]
  /** Each container with an `ephemeral-storage` limit: its log, and HOME and /tmp where it is the only one. */
  containers: readonly Limit[]
  graceMs: number
}

export function storageLimits(
  pod: Pod,
  defaults: { bytes: string; inodes: number } = defaultPodStorage,
): StorageLimits {
  const spec = pod.spec
  const volumes = (spec?.volumes ?? [])
    .filter(({ emptyDir }) => emptyDir?.sizeLimit !== undefined && emptyDir.medium !== 'Memory')
    .map(({ name, emptyDir }) => limit(name, emptyDir?.sizeLimit ?? 0))
    .filter(({ bytes }) => bytes > 0)
  const containers = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])].flatMap(({ name, resources }) => {
    const amount = resources?.limits?.['ephemeral-storage']
    return amount === undefined ? [] : [limit(name, amount)]
  })
  const annotations = pod.metadata?.annotations ?? {}
  const graceSeconds = Math.min(wholeNumber(annotations[graceAnnotation]) ?? 0, longestGraceSeconds)
  return {
    pod: podLimit(pod, containers) ?? limit('', defaults.bytes),
    inodes: wholeNumber(annotations[inodesAnnotation]) ?? defaults.inodes,
    volumes,
    containers: containers.length > 1 ? containers : [],
    graceMs: graceSeconds * 1000,
  }
}

/** The pod's own limit, else the sum of its containers' as the kubelet adds them up. */
function podLimit(pod: Pod, containers: readonly Limit[]): Limit | undefined {
  const own = pod.spec?.resources?.limits?.['ephemeral-storage']
  if (own !== undefined) return limit('', own)
  if (containers.length === 0) return undefined
  const bytes = containers.reduce((sum, each) => sum + each.bytes, 0)
  return { name: '', bytes, text: containers.length === 1 ? (containers[0]?.text ?? '') : quantityText(bytes) }
}

/** Why the pod must go, in the kubelet's words; undefined while it keeps to its limits, enlarged by `slack`. */
export function exceededLimit(limits: StorageLimits, usage: PodUsage, slack = 1): string | undefined {
  const isOver = (used: Usage | undefined, { bytes }: Limit): boolean => (used?.bytes ?? 0) > bytes * slack
  const volume = limits.volumes.find((each) => isOver(usage.parts[`volumes/${each.name}`], each))
  if (volume) return `Usage of EmptyDir volume "${volume.name}" exceeds the limit "${volume.text}".`
  const container = limits.containers.find((each) => isOver(usage.parts[`logs/${each.name}`], each))
  if (container) return `Container ${container.name} exceeded its local ephemeral storage limit "${container.text}".`
  if (isOver(usage.total, limits.pod)) {
    return `Pod ephemeral local storage usage exceeds the total limit of containers ${limits.pod.text}.`
  }
  if (usage.total.inodes > limits.inodes * slack) return `Pod inode usage exceeds the limit ${limits.inodes}.`
  return undefined
}

/** Bytes and inodes the pod may still take before the nearest of its limits. */
export function headroom(limits: StorageLimits, usage: PodUsage): Usage {
  const left = [
    limits.pod.bytes - usage.total.bytes,
    ...limits.volumes.map(({ name, bytes }) => bytes - (usage.parts[`volumes/${name}`]?.bytes ?? 0)),
    ...limits.containers.map(({ name, bytes }) => bytes - (usage.parts[`logs/${name}`]?.bytes ?? 0)),
  ]
  return { bytes: Math.max(0, Math.min(...left)), inodes: Math.max(0, limits.inodes - usage.total.inodes) }
}

function limit(name: string, amount: string | number): Limit {
  return { name, bytes: Math.ceil(quantityValue(amount)), text: String(amount) }
}

function wholeNumber(text: string | undefined): number | undefined {
  const value = Number(text)
  return text !== undefined && text !== '' && Number.isInteger(value) && value >= 0 ? value : undefined
}

/** A number of bytes as Kubernetes writes it where that is exact. */
export function quantityText(bytes: number): string {
  const units = ['', 'Ki', 'Mi', 'Gi', 'Ti']
  let value = Math.floor(bytes)
  let unit = 0
  while (value >= 1024 && value % 1024 === 0 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${value}${units[unit]}`
}

import { type Container, type PodSpec, quantityToNumber } from '@corral/resources'
import type { ResourceLimits } from '../isolation/isolation.js'

/** A Kubernetes quantity as a plain number of its unit: `250m` is 0.25, `1Ki` is 1024. */
export function quantityValue(quantity: string | number): number {
  const value = quantityToNumber(quantity)
  if (value === undefined) throw new RangeError(`"${quantity}" is not a quantity`)
  return value
}

/** The limits of one container, as the isolation enforces them. */
export function containerLimits(container: Container, pidsLimit?: number): ResourceLimits {
  return limitsFrom(container.resources?.limits, pidsLimit)
}

/**
 * The limits of the pod as a whole: its own, else the sum of its containers' where every one has a limit. The overhead
 * of its RuntimeClass comes on top, as the kubelet does it.
 */
export function podLimits(spec: PodSpec, pidsLimit?: number): ResourceLimits {
  const limits = { ...limitsOfSpec(spec, pidsLimit), cpuWeightMillis: cpuWeightMillis(spec) }
  const overhead = limitsFrom(spec.overhead)
  return {
    ...limits,
    ...(limits.memoryBytes === undefined ? {} : { memoryBytes: limits.memoryBytes + (overhead.memoryBytes ?? 0) }),
    ...(limits.cpuMillis === undefined ? {} : { cpuMillis: limits.cpuMillis + (overhead.cpuMillis ?? 0) }),
  }
}

/** What a pod without a request weighs: something, so that pods with requests do not starve it. */
const leastWeightMillis = 100

/** The CPU its containers ask for together; with it another pod's fork bomb takes no more than that pod's share. */
function cpuWeightMillis({ containers, resources }: PodSpec): number {
  const requests = resources?.requests ? [resources.requests] : containers.map((each) => each.resources?.requests)
  const asked = requests.reduce((sum, list) => sum + (list?.cpu === undefined ? 0 : quantityValue(list.cpu) * 1000), 0)
  return Math.max(leastWeightMillis, Math.ceil(asked))
}

function limitsOfSpec(spec: PodSpec, pidsLimit?: number): ResourceLimits {
  if (spec.resources?.limits) return limitsFrom(spec.resources.limits, pidsLimit)
  const each = [...spec.containers, ...(spec.initContainers ?? [])].map((container) => containerLimits(container))
  const memory = sumIfAll(each.map((limits) => limits.memoryBytes))
  const cpu = sumIfAll(each.map((limits) => limits.cpuMillis))
  return {
    ...(memory === undefined ? {} : { memoryBytes: memory }),
    ...(cpu === undefined ? {} : { cpuMillis: cpu }),
    ...(pidsLimit === undefined ? {} : { pids: pidsLimit }),
  }
}

function limitsFrom(list: Record<string, string | number> | undefined, pidsLimit?: number): ResourceLimits {
  return {
    ...(list?.memory === undefined ? {} : { memoryBytes: Math.ceil(quantityValue(list.memory)) }),
    ...(list?.cpu === undefined ? {} : { cpuMillis: Math.ceil(quantityValue(list.cpu) * 1000) }),
    ...(pidsLimit === undefined ? {} : { pids: pidsLimit }),
  }
}

function sumIfAll(amounts: (number | undefined)[]): number | undefined {
  let total = 0
  for (const amount of amounts) {
    if (amount === undefined) return undefined
    total += amount
  }
  return total
}

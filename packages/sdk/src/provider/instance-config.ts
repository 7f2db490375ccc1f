import { SandboxError } from '../sandbox-error.js'
import { checkMounts } from './instance-sources.js'
import type { InstanceConfig, InstanceStatus } from './sandbox-provider.js'

export const instanceDefaults = { image: 'corral/daemon', memoryMb: 4096, cpuCores: 2, idleTimeoutMinutes: 30 }
const limits = { memoryMb: 32_768, cpuCores: 16 }
/** Kubernetes counts CPU in thousandths. */
const leastCpuCores = 0.001

const networkModes: readonly unknown[] = ['bridge', 'none']
const statuses: readonly unknown[] = ['stopped', 'creating', 'running', 'idle', 'stopping', 'error']

/** Refuses what cannot work before anything is made: programs without types reach this, too. */
export function checkConfig(config: InstanceConfig): void {
  if (!config) throw invalid('a sandbox needs a configuration')
  const { id, image, memoryMb, cpuCores, idleTimeoutMinutes, networkMode } = config
  checkProject(config.projectId)
  if (id !== undefined && !(typeof id === 'string' && /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(id)))
    throw invalid(`"${id}" is not an id`)
  if (image !== undefined) checkImage(image)
  if (memoryMb !== undefined && !isBetween(memoryMb, 1, limits.memoryMb))
    throw invalid(`memoryMb must lie between 1 and ${limits.memoryMb}`)
  if (cpuCores !== undefined && !isBetween(cpuCores, leastCpuCores, limits.cpuCores))
    throw invalid(`cpuCores must lie between ${leastCpuCores} and ${limits.cpuCores}`)
  if (idleTimeoutMinutes !== undefined && !isBetween(idleTimeoutMinutes, Number.MIN_VALUE, Number.MAX_VALUE))
    throw invalid('idleTimeoutMinutes must be a positive number')
  // A word that is not known must not mean an open network.
  if (networkMode !== undefined && !networkModes.includes(networkMode))
    throw invalid(`networkMode "${networkMode}" is neither bridge nor none`)
  checkMounts(config)
}

export function checkProject(projectId: string): void {
  if (typeof projectId !== 'string' || projectId === '') throw invalid('projectId must be a text that is not empty')
}

export function checkImage(image: string): void {
  if (typeof image !== 'string' || !/^\S+$/.test(image)) throw invalid(`"${image}" is not the name of an image`)
}

/** A filter that is misread would remove nothing, or everything. */
export function checkFilter(filter: { olderThan?: Date; status?: InstanceStatus }): void {
  const { olderThan, status } = filter
  if (olderThan !== undefined && !(olderThan instanceof Date && !Number.isNaN(olderThan.getTime())))
    throw invalid('olderThan is not a time')
  if (status !== undefined && !statuses.includes(status))
    throw invalid(`status "${status}" is none of ${statuses.join(', ')}`)
}

function isBetween(value: number, least: number, most: number): boolean {
  return typeof value === 'number' && value >= least && value <= most
}

function invalid(message: string): SandboxError {
  return new SandboxError('Invalid', message)
}

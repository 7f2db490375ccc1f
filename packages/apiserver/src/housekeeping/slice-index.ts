import type { EndpointSlice, KubeObject, Pod, Service } from '@corral/resources'
import type { ObjectEvent } from './housekeeping-store.js'
import { SERVICE_NAME_LABEL } from './slice-plan.js'

export const SERVICES = 'services'
export const PODS = 'pods'
export const SLICES = 'endpointslices.discovery.k8s.io'

/** What the slices of one service depend on. */
export interface SliceWorld {
  readonly service: Service | undefined
  readonly pods: readonly Pod[]
  readonly slices: readonly EndpointSlice[]
}

/**
 * Services, pods and slices by what connects them, kept up to date from events, so that a change of one pod costs no
 * look at all the others.
 */
export class SliceIndex {
  readonly #services = new Map<string, Service>()
  readonly #servicesByNamespace = new Map<string, Set<string>>()
  readonly #pods = new Map<string, Map<string, Pod>>()
  readonly #slices = new Map<string, Map<string, EndpointSlice>>()

  /** Takes in a change and names the services (`namespace/name`) whose slices it may concern. */
  observe({ type, resource, object }: ObjectEvent): string[] {
    const isGone = type === 'DELETED'
    if (resource === SERVICES) return this.#observeService(object, isGone)
    if (resource === PODS) return this.#observePod(object, isGone)
    return resource === SLICES ? this.#observeSlice(object, isGone) : []
  }

  world(key: string): SliceWorld {
    const service = this.#services.get(key)
    const selector = service?.spec?.selector ?? {}
    const pods = [...(this.#pods.get(key.slice(0, key.indexOf('/')))?.values() ?? [])]
    return {
      service,
      pods: pods.filter((pod) => matches(selector, pod.metadata?.labels ?? {})),
      slices: [...(this.#slices.get(key)?.values() ?? [])],
    }
  }

  #observeService(service: Service, isGone: boolean): string[] {
    const { namespace = '', name = '' } = service.metadata ?? {}
    const key = `${namespace}/${name}`
    const keys = this.#servicesByNamespace.get(namespace) ?? new Set()
    this.#servicesByNamespace.set(namespace, keys)
    if (isGone) {
      this.#services.delete(key)
      keys.delete(key)
      return []
    }
    this.#services.set(key, service)
    keys.add(key)
    return [key]
  }

  #observePod(pod: Pod, isGone: boolean): string[] {
    const { namespace = '', uid = '', labels = {} } = pod.metadata ?? {}
    const pods = this.#pods.get(namespace) ?? new Map<string, Pod>()
    this.#pods.set(namespace, pods)
    // A pod that left a selector is news to the service it left.
    const before = pods.get(uid)?.metadata?.labels ?? {}
    if (isGone) pods.delete(uid)
    else pods.set(uid, pod)
    return [...(this.#servicesByNamespace.get(namespace) ?? [])].filter((key) => {
      const selector = this.#services.get(key)?.spec?.selector ?? {}
      return matches(selector, labels) || matches(selector, before)
    })
  }

  #observeSlice(slice: KubeObject, isGone: boolean): string[] {
    const { namespace = '', uid = '', labels = {} } = slice.metadata ?? {}
    const key = `${namespace}/${labels[SERVICE_NAME_LABEL] ?? ''}`
    const slices = this.#slices.get(key) ?? new Map<string, EndpointSlice>()
    // Objects of this resource are EndpointSlices.
    if (isGone) slices.delete(uid)
    else slices.set(uid, slice as EndpointSlice)
    if (slices.size > 0) this.#slices.set(key, slices)
    else this.#slices.delete(key)
    return this.#services.has(key) ? [key] : []
  }
}

function matches(selector: Readonly<Record<string, string>>, labels: Readonly<Record<string, string>>): boolean {
  let isAny = false
  for (const key in selector) {
    if (labels[key] !== selector[key]) return false
    isAny = true
  }
  return isAny
}

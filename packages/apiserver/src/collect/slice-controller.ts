import type { EndpointSlice, KubeObject, Pod, Service } from '@corral/resources'
import { refOf } from './collect-store.js'
import type { Collector, CollectorPorts } from './collector.js'
import { KeyWorker } from './key-worker.js'
import { planSlices, SERVICE_NAME_LABEL } from './slice-plan.js'

const SERVICES = 'services'
const PODS = 'pods'
const SLICES = 'endpointslices.discovery.k8s.io'

/** Keeps an EndpointSlice per service with a selector in step with the pods it selects. */
export function sliceController({ store, log }: CollectorPorts): Collector {
  /** Services with a selector by `namespace/name`; a pod's events look here for who cares. */
  const selectors = new Map<string, Readonly<Record<string, string>>>()
  const byNamespace = new Map<string, Set<string>>()
  /** Labels a pod had when last seen: a pod that left a selector is also news. */
  const podLabels = new Map<string, Readonly<Record<string, string>>>()

  const reconcile = async (key: string): Promise<void> => {
    const [namespace = '', name = ''] = key.split('/')
    const inNamespace = <T extends KubeObject>(resource: string): T[] =>
      // Each resource holds objects of its kind only.
      ([...store.list(resource)] as T[]).filter((object) => object.metadata?.namespace === namespace)
    const service = inNamespace<Service>(SERVICES).find((each) => each.metadata?.name === name)
    const slices = inNamespace<EndpointSlice>(SLICES).filter(
      (slice) => slice.metadata?.labels?.[SERVICE_NAME_LABEL] === name,
    )
    const plan = planSlices(service, inNamespace<Pod>(PODS), slices)
    for (const slice of plan.create) await store.create(SLICES, slice)
    for (const slice of plan.update) {
      const current = slices.find((each) => each.metadata?.name === slice.metadata?.name)!
      await store.update(refOf(SLICES, current), (newest) => ({
        ...newest,
        ...slice,
        metadata: { ...newest.metadata, ...slice.metadata },
      }))
    }
    for (const slice of plan.remove) await store.delete(refOf(SLICES, slice))
  }
  const worker = new KeyWorker({ work: reconcile, log, concurrency: 4 })

  const putService = (service: Service): void => {
    const { namespace = '', name = '' } = service.metadata ?? {}
    const key = `${namespace}/${name}`
    selectors.set(key, service.spec?.selector ?? {})
    const keys = byNamespace.get(namespace)
    if (keys) keys.add(key)
    else byNamespace.set(namespace, new Set([key]))
    worker.add(key)
  }
  const dropService = (service: KubeObject): void => {
    const { namespace = '', name = '' } = service.metadata ?? {}
    selectors.delete(`${namespace}/${name}`)
    byNamespace.get(namespace)?.delete(`${namespace}/${name}`)
  }
  const touchPod = (pod: KubeObject, isGone: boolean): void => {
    const { namespace = '', uid = '', labels = {} } = pod.metadata ?? {}
    const before = podLabels.get(uid)
    if (isGone) podLabels.delete(uid)
    else podLabels.set(uid, labels)
    for (const key of byNamespace.get(namespace) ?? []) {
      const selector = selectors.get(key) ?? {}
      if (matches(selector, labels) || (before && matches(selector, before))) worker.add(key)
    }
  }

  return {
    load() {
      for (const service of store.list(SERVICES)) putService(service)
      for (const pod of store.list(PODS)) touchPod(pod, false)
    },
    observe({ type, resource, object }) {
      if (resource === PODS) touchPod(object, type === 'DELETED')
      else if (resource === SERVICES) {
        if (type === 'DELETED') dropService(object)
        else putService(object)
      } else if (resource === SLICES && type !== 'ADDED') {
        const service = object.metadata?.labels?.[SERVICE_NAME_LABEL]
        const key = `${object.metadata?.namespace ?? ''}/${service ?? ''}`
        if (selectors.has(key)) worker.add(key)
      }
    },
    idle: () => worker.idle(),
    close: () => worker.close(),
  }
}

function matches(selector: Readonly<Record<string, string>>, labels: Readonly<Record<string, string>>): boolean {
  const wanted = Object.entries(selector)
  return wanted.length > 0 && wanted.every(([key, value]) => labels[key] === value)
}

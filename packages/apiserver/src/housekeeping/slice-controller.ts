import { keyedWorker } from '@corral/runtime'
import type { Housekeeper, HousekeeperPorts } from './housekeeper.js'
import { refOf } from './housekeeping-store.js'
import { PODS, SERVICES, SLICES, SliceIndex } from './slice-index.js'
import { planSlices } from './slice-plan.js'

/** Keeps an EndpointSlice per service with a selector in step with the pods it selects. */
export function sliceController({ store, log }: HousekeeperPorts): Housekeeper {
  const index = new SliceIndex()

  const reconcile = async (key: string): Promise<void> => {
    const { service, pods, slices } = index.world(key)
    const plan = planSlices(service, pods, slices)
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
  const worker = keyedWorker({ name: 'endpoint-slices', workers: 4, work: reconcile, log })

  return {
    load() {
      // Slices first: a service is looked at with the slices it already has.
      for (const resource of [SLICES, SERVICES, PODS]) {
        for (const object of store.list(resource)) {
          for (const key of index.observe({ type: 'ADDED', resource, object })) worker.add(key)
        }
      }
    },
    observe(event) {
      for (const key of index.observe(event)) worker.add(key)
    },
    idle: () => worker.idle(),
    close: () => worker.close(),
  }
}

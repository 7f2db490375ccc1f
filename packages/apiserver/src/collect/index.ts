export {
  type CollectEvent,
  type CollectRef,
  type CollectStore,
  type PropagationPolicy,
  refOf,
} from './collect-store.js'
export { CRD_FINALIZER } from './crd-deleter.js'
export { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from './garbage-plan.js'
export { NAMESPACE_FINALIZER } from './namespace-deleter.js'
export { type CollectorOptions, type Collectors, startCollectors } from './start-collectors.js'

export {
  type CollectEvent,
  type CollectRef,
  type CollectStore,
  type PropagationPolicy,
  refOf,
} from './collect-store.js'
export { type Collectors, startCollectors } from './start-collectors.js'

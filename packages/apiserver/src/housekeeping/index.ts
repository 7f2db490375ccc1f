export {
  type HousekeepingStore,
  type ObjectEvent,
  type ObjectRef,
  type PropagationPolicy,
  refOf,
} from './housekeeping-store.js'
export { type Housekeeping, startHousekeeping } from './start-housekeeping.js'

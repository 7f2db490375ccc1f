export type * from './isolation.js'
export { IsolationError, type IsolationErrorCode } from './isolation-error.js'
export {
  bubblewrapIsolation,
  type IsolationOptions,
  type PickedIsolation,
  pickIsolation,
  processIsolation,
} from './tiers.js'

import { serverSideApply } from './checks/apply.js'
import { crud } from './checks/crud.js'
import { discovery } from './checks/discovery.js'
import { openapi } from './checks/openapi.js'
import { patch } from './checks/patch.js'
import { transport } from './checks/transport.js'
import type { Check } from './harness/check.js'

/** The whole suite, in the order of its numbers. */
export const allChecks: readonly Check[] = [
  ...transport,
  ...discovery,
  ...openapi,
  ...crud,
  ...patch,
  ...serverSideApply,
]

import type { Scenario } from '../harness/scenario.js'
import { claimAdoptionScenarios } from './claim-adoption.js'
import { claimColdScenarios } from './claim-cold.js'
import { claimLifecycleScenarios } from './claim-lifecycle.js'
import { sandboxChildScenarios } from './sandbox-children.js'
import { sandboxConditionScenarios } from './sandbox-conditions.js'
import { sandboxPodScenarios } from './sandbox-pods.js'
import { poolScenarios, stuckPoolScenarios, templateScenarios } from './templates-and-pools.js'

/** Every scenario of the suite, in the order of the table. */
export const allScenarios: readonly Scenario[] = [
  ...sandboxConditionScenarios,
  ...sandboxPodScenarios,
  ...sandboxChildScenarios,
  ...claimColdScenarios,
  ...claimAdoptionScenarios,
  ...claimLifecycleScenarios,
  ...templateScenarios,
  ...poolScenarios,
  ...stuckPoolScenarios,
]

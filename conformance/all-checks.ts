import { answers } from './checks/answers.js'
import { serverSideApply } from './checks/apply.js'
import { coreValidation } from './checks/core-validation.js'
import { customResources } from './checks/crds.js'
import { crud } from './checks/crud.js'
import { deletion } from './checks/deletion.js'
import { differential } from './checks/differential.js'
import { discovery } from './checks/discovery.js'
import { durability } from './checks/durability.js'
import { kubectlAnswers } from './checks/kubectl-answers.js'
import { listAndSelect, watching } from './checks/list-watch.js'
import { clients, reviewsAndMore } from './checks/misc.js'
import { openapi } from './checks/openapi.js'
import { patch } from './checks/patch.js'
import { sdks } from './checks/sdks.js'
import { streaming } from './checks/streaming.js'
import { transport } from './checks/transport.js'
import { upstream } from './checks/upstream.js'
import type { Check } from './harness/check.js'

const sections = [
  transport,
  discovery,
  openapi,
  crud,
  patch,
  serverSideApply,
  listAndSelect,
  watching,
  deletion,
  customResources,
  streaming,
  clients,
  reviewsAndMore,
  durability,
  upstream,
  sdks,
  differential,
  coreValidation,
  answers,
  kubectlAnswers,
]

/** The whole suite, in the order of its numbers. */
export const allChecks: readonly Check[] = sections.flat().sort((a, b) => a.number - b.number)

import type { CustomResourceDefinition } from '../generated/core-types.js'
import { EMBEDDED_CRDS_TEXTS, POD_SPEC_PLACEHOLDER, POD_SPEC_TEXT } from '../generated/embedded-crds.js'

let crds: readonly CustomResourceDefinition[] | undefined

/**
 * The CRDs the embedded server installs. Read at the first call from generated text, which is much quicker than building
 * them from the schemas, and shared after that: treat them as frozen.
 */
export function embeddedCrds(): readonly CustomResourceDefinition[] {
  // Made by our generator and compared with a fresh build in a test, so the shape holds.
  crds ??= EMBEDDED_CRDS_TEXTS.map(
    (text) => JSON.parse(text.replaceAll(POD_SPEC_PLACEHOLDER, () => POD_SPEC_TEXT)) as CustomResourceDefinition,
  )
  return crds
}

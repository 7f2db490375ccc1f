export { jsonPatch } from './json-patch.js'
export { mergePatch } from './merge-patch.js'
export type { PatchField, PatchSchema } from './patch-schema.js'
export { strategicMerge } from './strategic-merge.js'

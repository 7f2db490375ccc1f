export { jsonPatch, unknownMembers } from './json-patch.js'
export { mergePatch } from './merge-patch.js'
export { strategicMergePatch } from './table-patch-schema.js'

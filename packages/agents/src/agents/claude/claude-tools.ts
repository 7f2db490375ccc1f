import { eventLimits } from '@corral/protocol'
import { asObject, asString, type JsonObject } from '../../json-value.js'

/** The file a call will change if it succeeds. Shell commands may change any; the diff at the end tells. */
export function changedPath(block: JsonObject): { path: string; change: 'written' | 'edited' } | undefined {
  const input = asObject(block.input)
  const path = asString(input?.file_path) ?? asString(input?.notebook_path)
  if (path === undefined || path.length > eventLimits.pathCharacters) return undefined
  switch (block.name) {
    case 'Write':
      return { path, change: 'written' }
    case 'Edit':
    case 'MultiEdit':
    case 'NotebookEdit':
      return { path, change: 'edited' }
    default:
      return undefined
  }
}

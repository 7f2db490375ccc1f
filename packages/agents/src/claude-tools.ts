import { type AgentEvent, clipText, eventLimits } from '@corral/protocol'
import { asObject, asString, type JsonObject } from './json-value.js'

/** The argument that tells a person what a call is about, by preference. */
const tellingArguments = [
  'command',
  'file_path',
  'notebook_path',
  'path',
  'pattern',
  'query',
  'url',
  'description',
  'prompt',
]

/** A `tool_use` block as an event. */
export function toolCallEvent(block: JsonObject): AgentEvent {
  const input = asObject(block.input) ?? {}
  const telling = tellingArguments.map((name) => asString(input[name])).find((value) => value !== undefined)
  return {
    type: 'tool_call',
    call_id: clipText(asString(block.id) ?? '', 200),
    tool: clipText(asString(block.name) ?? 'unknown', 200),
    summary: clipText(telling?.split('\n', 1)[0] ?? '', eventLimits.summaryCharacters),
    input: clipText(JSON.stringify(input), eventLimits.textCharacters),
  }
}

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

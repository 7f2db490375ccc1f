import { asArray, asObject, asString, type JsonObject } from '../../json-value.js'

const itemTypes: Readonly<Record<string, string>> = {
  agentMessage: 'agent_message',
  collabAgentToolCall: 'collab_tool_call',
  commandExecution: 'command_execution',
  fileChange: 'file_change',
  mcpToolCall: 'mcp_tool_call',
  reasoning: 'reasoning',
  webSearch: 'web_search',
}

/**
 * A notification of `codex app-server` as the line that `codex exec --json` prints for the same. Undefined for what the
 * other does not tell.
 */
export function execLineOf(notification: JsonObject): JsonObject | undefined {
  const params = asObject(notification.params) ?? {}
  switch (notification.method) {
    case 'item/started':
    case 'item/completed': {
      const item = execItemOf(asObject(params.item) ?? {})
      return item && { type: notification.method === 'item/started' ? 'item.started' : 'item.completed', item }
    }
    case 'warning':
      return { type: 'item.completed', item: { type: 'error', message: params.message } }
    case 'error':
      return { type: 'error', message: errorText(asObject(params.error) ?? {}) }
    case 'turn/completed':
      return turnLineOf(asObject(params.turn) ?? {})
    case 'thread/tokenUsage/updated':
      return { type: 'corral.usage', usage: execUsageOf(asObject(asObject(params.tokenUsage)?.total) ?? {}) }
    default:
      return undefined
  }
}

/** While it tries again the reason is beside the message. */
function errorText({ message, additionalDetails }: JsonObject): string {
  return [message, additionalDetails].flatMap((part) => asString(part) ?? []).join(': ')
}

function turnLineOf(turn: JsonObject): JsonObject {
  if (turn.status === 'completed') return { type: 'turn.completed' }
  const { message } = asObject(turn.error) ?? {}
  return { type: 'turn.failed', error: { message: asString(message) ?? `its turn was ${asString(turn.status)}` } }
}

function execItemOf(item: JsonObject): JsonObject | undefined {
  const type = itemTypes[asString(item.type) ?? '']
  if (type === undefined) return undefined
  return {
    ...{ ...item, type },
    aggregated_output: item.aggregatedOutput,
    exit_code: item.exitCode,
    ...(type === 'reasoning' ? { text: [...asArray(item.summary), ...asArray(item.content)].join('\n\n') } : {}),
    ...(type === 'file_change' ? { changes: asArray(item.changes).map(execChangeOf) } : {}),
  }
}

function execChangeOf(entry: unknown): JsonObject {
  const change = asObject(entry) ?? {}
  return { ...change, kind: asObject(change.kind)?.type ?? change.kind }
}

const execUsageOf = (usage: JsonObject): JsonObject => ({
  input_tokens: usage.inputTokens,
  cached_input_tokens: usage.cachedInputTokens,
  cache_write_input_tokens: usage.cacheWriteInputTokens,
  output_tokens: usage.outputTokens,
})

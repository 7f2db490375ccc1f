import { CorralError } from '@corral/protocol'
import type { CallToolResult } from '@modelcontextprotocol/server'

/** The part of a call's context that says whether its client still waits for it. */
export interface Cancellable {
  readonly mcpReq: { readonly signal: AbortSignal }
}

/** A tool's answer, as data and as the text that clients without structured output show. */
export async function toolResult(call: () => Promise<Record<string, unknown>>): Promise<CallToolResult> {
  try {
    const answer = await call()
    return { content: [{ type: 'text', text: JSON.stringify(answer) }], structuredContent: answer }
  } catch (error) {
    return { isError: true, content: [{ type: 'text', text: explained(error) }] }
  }
}

/** A failure as the model should read it: code, what happened, what to do next. */
function explained(error: unknown): string {
  if (!(error instanceof CorralError)) return `InternalError: ${error instanceof Error ? error.message : String(error)}`
  return `${error.code}: ${error.message}${error.hint ? `\n${error.hint}` : ''}`
}

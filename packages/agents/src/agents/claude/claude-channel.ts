import { clipText, eventLimits } from '@corral/protocol'
import type { AgentAnswer, AgentChannel, AgentQuestion } from '../../agent-adapter.js'
import { asArray, asObject, asString, type JsonObject } from '../../json-value.js'

/** Claude Code's own protocol on standard input, with `--input-format stream-json --permission-prompt-tool stdio`. */
export const claudeChannel: AgentChannel = {
  steer: (text) => line({ type: 'user', message: { role: 'user', content: text } }),
  answer: (question, answer) =>
    line({
      type: 'control_response',
      response: { subtype: 'success', request_id: question.id, response: decision(question, answer) },
    }),
}

const line = (value: object): string => `${JSON.stringify(value)}\n`

function decision(question: AgentQuestion, answer: AgentAnswer): object {
  if (question.kind === 'input') {
    const label = question.choices.find(({ id }) => id === answer.choiceId)?.label ?? answer.text ?? ''
    return { behavior: 'allow', updatedInput: { ...question.payload, answers: { [question.text]: label } } }
  }
  return answer.choiceId === 'allow'
    ? { behavior: 'allow', updatedInput: question.payload ?? {} }
    : { behavior: 'deny', message: answer.text ?? 'The user said no.' }
}

/** What a `control_request` asks; undefined for requests that are no question. */
export function questionOf(request: JsonObject): AgentQuestion | undefined {
  const body = asObject(request.request)
  const id = asString(request.request_id)
  if (id === undefined || id.length > 200 || body?.subtype !== 'can_use_tool') return undefined
  const input = asObject(body.input) ?? {}
  const callId = asString(body.tool_use_id)
  const asked = asObject(asArray(input.questions)[0])
  if (asked)
    return {
      id,
      kind: 'input',
      text: clipText(asString(asked.question) ?? '', eventLimits.summaryCharacters),
      callId,
      payload: input,
      choices: asArray(asked.options)
        .slice(0, 50)
        .map((option, index) => ({ id: String(index), label: clipText(asString(asObject(option)?.label) ?? '', 200) })),
    }
  const what = asString(body.description) ?? ''
  return {
    id,
    kind: 'permission',
    text: clipText(`${asString(body.tool_name) ?? 'A tool'} ${what}`.trim(), eventLimits.summaryCharacters),
    callId,
    payload: input,
    choices: [
      { id: 'allow', label: 'Allow', allows: true },
      { id: 'deny', label: 'Deny', allows: false },
    ],
  }
}

import { clipText, eventLimits } from '@corral/protocol'
import type { AgentAnswer, AgentQuestion, InboxEntry } from '../../agent-adapter.js'
import { asArray, asObject, asString, type JsonObject } from '../../json-value.js'
import type { AskedQuestion } from '../../question-book.js'

/** An answer as the program beside Claude Code needs it: the response to its request, or one part of it. */
export function answerEntry(question: AgentQuestion, answer: AgentAnswer): InboxEntry {
  const { name, id: request_id, payload = {} } = question
  const chosen = question.choices.find(({ id }) => id === answer.choiceId)
  const label = chosen?.label ?? answer.text ?? ''
  const entry = { kind: 'answer', name, request_id, label } as const
  if (question.kind === 'input')
    return { ...entry, question: payload.question, of: payload.of ?? 1, input: payload.input ?? {} }
  return {
    ...entry,
    response: chosen?.allows
      ? { behavior: 'allow', updatedInput: payload.input ?? {} }
      : { behavior: 'deny', message: answer.text ?? 'The user said no.' },
  }
}

/** What a `control_request` asks: a permission, or each question of `AskUserQuestion`. None for requests of other kinds. */
export function questionsOf(request: JsonObject): AskedQuestion[] {
  const body = asObject(request.request)
  const id = asString(request.request_id)
  if (id === undefined || id.length > 200 || body?.subtype !== 'can_use_tool') return []
  const input = asObject(body.input) ?? {}
  const callId = asString(body.tool_use_id)
  const asked = asArray(input.questions)
    .slice(0, 20)
    .map((entry) => asObject(entry) ?? {})
  const of = new Set(asked.map((each) => each.question)).size
  if (asked.length > 0)
    return asked.map((question) => ({
      ...{ id, kind: 'input', callId },
      text: clipText(asString(question.question) ?? '', eventLimits.summaryCharacters),
      payload: { input, of, question: asString(question.question) },
      choices: asArray(question.options)
        .slice(0, 50)
        .map((option, index) => ({
          id: String(index + 1),
          label: clipText(asString(asObject(option)?.label) ?? '', 200),
        })),
    }))
  const what = asString(body.description) ?? ''
  return [
    {
      ...{ id, kind: 'permission', callId, payload: { input } },
      text: clipText(`${asString(body.tool_name) ?? 'A tool'} ${what}`.trim(), eventLimits.summaryCharacters),
      choices: [
        { id: 'allow', label: 'Allow', allows: true },
        { id: 'deny', label: 'Deny', allows: false },
      ],
    },
  ]
}

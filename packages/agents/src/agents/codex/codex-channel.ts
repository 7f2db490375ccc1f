import { clipText, eventLimits } from '@corral/protocol'
import type { AgentAnswer, AgentQuestion, InboxEntry } from '../../agent-adapter.js'
import { asArray, asObject, asString, type JsonObject } from '../../json-value.js'
import type { AskedQuestion } from '../../question-book.js'

/** An answer as the program beside Codex needs it: the decision about a permission, or one part of what was asked. */
export function answerEntry(question: AgentQuestion, answer: AgentAnswer): InboxEntry {
  const { name, id: request_id, payload = {} } = question
  const chosen = question.choices.find(({ id }) => id === answer.choiceId)
  const entry = { kind: 'answer', name, request_id, label: chosen?.label ?? answer.text ?? '' } as const
  if (question.kind === 'input') return { ...entry, question: payload.question, of: payload.of ?? 1 }
  return { ...entry, decision: chosen?.id ?? 'decline' }
}

const allow = { id: 'accept', label: 'Allow', allows: true }
const allowForSession = { id: 'acceptForSession', label: 'Allow for this session', allows: true }
const deny = { id: 'decline', label: 'Deny', allows: false }

const idOf = (request: JsonObject): string => String(request.id).slice(0, 200)

/** What a request of the app server asks: a permission, or each of several questions. None for requests of other kinds. */
export function questionsOf(request: JsonObject): AskedQuestion[] {
  const params = asObject(request.params) ?? {}
  switch (request.method) {
    case 'item/commandExecution/requestApproval':
      return [permission(request, asString(params.command) ?? asString(params.reason) ?? 'A command')]
    case 'item/fileChange/requestApproval':
      return [permission(request, asString(params.reason) ?? 'A change of files')]
    case 'item/tool/requestUserInput':
      return inputs(idOf(request), asString(params.itemId), asArray(params.questions))
    default:
      return []
  }
}

function permission(request: JsonObject, what: string): AskedQuestion {
  const params = asObject(request.params) ?? {}
  const isForSession = asArray(params.availableDecisions).includes(allowForSession.id)
  return {
    ...{ id: idOf(request), kind: 'permission', callId: asString(params.itemId) },
    text: clipText(what, eventLimits.summaryCharacters),
    choices: [allow, ...(isForSession ? [allowForSession] : []), deny],
  }
}

function inputs(id: string, callId: string | undefined, asked: readonly unknown[]): AskedQuestion[] {
  const questions = asked.slice(0, 20).map((entry) => asObject(entry) ?? {})
  return questions.map((question) => ({
    ...{ id, kind: 'input', callId },
    text: clipText(asString(question.question) ?? '', eventLimits.summaryCharacters),
    payload: { question: asString(question.id), of: new Set(questions.map((each) => each.id)).size },
    choices: asArray(question.options)
      .slice(0, 50)
      .map((option, index) => ({
        id: String(index + 1),
        label: clipText(asString(asObject(option)?.label) ?? '', 200),
      })),
  }))
}

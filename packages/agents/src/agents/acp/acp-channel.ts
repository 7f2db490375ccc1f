import { clipText, eventLimits } from '@corral/protocol'
import type { AgentAnswer, AgentQuestion, InboxEntry } from '../../agent-adapter.js'
import { asArray, asObject, asString, type JsonObject } from '../../json-value.js'
import type { AskedQuestion } from '../../question-book.js'

/** An answer as our client needs it: the option of a permission, or the value of one field of a form. */
export function answerEntry({ name, id, choices, payload }: AgentQuestion, answer: AgentAnswer): InboxEntry {
  const chosen = choices.find((choice) => choice.id === answer.choiceId)
  const label = chosen?.label ?? answer.text ?? ''
  const entry = { kind: 'answer', name, id, label } as const
  if (payload?.field === undefined) return { ...entry, optionId: answer.choiceId }
  const text = chosen?.id ?? answer.text ?? ''
  return { ...entry, field: payload.field, of: payload.of ?? 1, value: fieldValue(asString(payload.type), text) }
}

/** Words as the type of their field; words that are none of its values are given as they are, for the agent to judge. */
function fieldValue(type: string | undefined, text: string): unknown {
  if (type === 'boolean') return /^(true|yes|y)$/i.test(text)
  if (type === 'array') return text.split(',').map((part) => part.trim())
  const isNumber = (type === 'number' || type === 'integer') && text.trim() !== '' && !Number.isNaN(Number(text))
  return isNumber ? Number(text) : text
}

/** What a request of the agent asks: a permission, or each field of a form. None for requests of other kinds. */
export function questionsOf(request: JsonObject): AskedQuestion[] {
  const params = asObject(request.params) ?? {}
  const id = String(request.id).slice(0, 200)
  if (request.method === 'session/request_permission') return [permission(id, params)]
  if (request.method === 'elicitation/create' && params.mode === 'form') return fields(id, params)
  return []
}

function permission(id: string, params: JsonObject): AskedQuestion {
  const call = asObject(params.toolCall)
  return {
    ...{ id, kind: 'permission', callId: asString(call?.toolCallId) },
    text: clipText(asString(call?.title) ?? 'The agent asks for permission', eventLimits.summaryCharacters),
    choices: asArray(params.options)
      .slice(0, 20)
      .map((entry) => {
        const option = asObject(entry)
        return {
          id: clipText(asString(option?.optionId) ?? '', 200),
          label: clipText(asString(option?.name) ?? '', 200),
          allows: (asString(option?.kind) ?? '').startsWith('allow'),
        }
      }),
  }
}

function fields(id: string, params: JsonObject): AskedQuestion[] {
  const message = asString(params.message) ?? 'The agent asks for input'
  const properties = Object.entries(asObject(asObject(params.requestedSchema)?.properties) ?? {}).slice(0, 20)
  return properties.map(([field, schema]) => {
    const property = asObject(schema) ?? {}
    const title = asString(property.title) ?? asString(property.description) ?? field
    return {
      ...{ id, kind: 'input', callId: asString(params.toolCallId) },
      text: clipText(properties.length === 1 ? message : `${message}\n${title}`, eventLimits.summaryCharacters),
      payload: { field, of: properties.length, type: asString(property.type) },
      choices: choicesOf(property),
    }
  })
}

function choicesOf(property: JsonObject): AskedQuestion['choices'] {
  if (property.type === 'boolean')
    return [
      { id: 'true', label: 'Yes' },
      { id: 'false', label: 'No' },
    ]
  const items = asObject(property.items) ?? property
  const titled = [...asArray(items.oneOf), ...asArray(items.anyOf)].map((entry) => asObject(entry) ?? {})
  const named = titled.map((entry) => ({ id: entry.const, label: entry.title ?? entry.const }))
  const plain = asArray(items.enum).map((value) => ({ id: value, label: value }))
  return [...named, ...plain].slice(0, 50).map(({ id, label }) => ({
    id: clipText(asString(id) ?? '', 200),
    label: clipText(asString(label) ?? '', 200),
  }))
}

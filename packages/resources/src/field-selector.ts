import { SelectorError } from './label-selector.js'

/** One condition on a field of an object, e.g. `spec.nodeName=a`. All of a list must hold. */
export interface FieldRequirement {
  readonly field: string
  readonly operator: '=' | '!='
  readonly value: string
}

/** Reads `metadata.name=a,status.phase!=Running`; `\` escapes a comma, an equals sign or itself. */
export function parseFieldSelector(text: string): FieldRequirement[] {
  return split(text)
    .filter((term) => term !== '')
    .map((term) => {
      const match = /^(.*?)(!=|==|=)(.*)$/s.exec(term)
      if (!match) throw new SelectorError(`invalid selector: '${text}'; can't understand '${term}'`)
      const [, field = '', operator, value = ''] = match
      return { field, operator: operator === '!=' ? '!=' : '=', value: unescaped(value, text) }
    })
}

/** Whether every requirement holds for what `read` answers; an absent field reads as the empty text. */
export function matchesFields(
  requirements: readonly FieldRequirement[],
  read: (field: string) => string | undefined,
): boolean {
  return requirements.every(({ field, operator, value }) => ((read(field) ?? '') === value) === (operator === '='))
}

function split(text: string): string[] {
  const terms: string[] = []
  let current = ''
  for (let i = 0; i < text.length; i++) {
    const char = text[i] ?? ''
    if (char === '\\') {
      current += char + (text[i + 1] ?? '')
      i += 1
    } else if (char === ',') {
      terms.push(current)
      current = ''
    } else current += char
  }
  return [...terms, current]
}

function unescaped(value: string, selector: string): string {
  return value.replace(/\\(.?)|[,=]/gs, (found, escaped: string | undefined) => {
    if (escaped !== undefined && escaped !== '' && ',=\\'.includes(escaped)) return escaped
    throw new SelectorError(`invalid field selector: ${found} in '${selector}'`)
  })
}

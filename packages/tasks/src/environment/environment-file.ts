import {
  type EnvironmentRequest,
  environmentFilePath,
  environmentFileSchema,
  environmentJsonSchema,
  environmentRequest,
  issueWords,
  maxEnvironmentFileBytes,
} from '@corral/protocol'
import { load, YAMLException } from 'js-yaml'
import { TaskError } from '../task-error.js'
import { yamlPlace } from './yaml-place.js'

/**
 * Reads the text of an environment file, for one part of it where that is named. `EnvironmentInvalid` names the field
 * that is wrong, and its line.
 */
export function parseEnvironmentFile(
  text: string,
  name: string = environmentFilePath,
  part?: string,
): EnvironmentRequest {
  const content = yamlOf(text, name)
  if (writtenOut(content) > maxWrittenOut)
    throw invalid(name, `has more than ${maxWrittenOut} letters once what its aliases stand for is written out`)
  const read = environmentFileSchema.safeParse(content)
  if (!read.success) {
    // Few at once, before their places are looked up: each look reads the whole file again, and a file may have thousands.
    const words = read.error.issues
      .slice(0, shownIssues)
      .flatMap((issue) => issueWords([issue], 'the file', fieldsAt).map((each) => `${placeOf(text, issue)}: ${each}`))
      .slice(0, shownIssues)
    throw invalid(name, [...words, ...(hasBrokenCommand(content) ? [brokenCommand] : [])].join('; '))
  }
  const request = environmentRequest(read.data, part)
  if (request) return request
  const parts = Object.keys(read.data.parts ?? {})
  throw new TaskError('EnvironmentInvalid', `${name} has no part "${part}"`, {
    hint: parts.length > 0 ? `Its parts: ${parts.join(', ')}.` : 'It has no `parts`: leave --part out.',
  })
}

const shownIssues = 5

/** Of a field that there is none of: where it is written. */
function placeOf(
  text: string,
  issue: { code: string; path: readonly PropertyKey[]; keys?: readonly string[] },
): string {
  return yamlPlace(text, [...issue.path, ...(issue.code === 'unrecognized_keys' ? (issue.keys ?? []).slice(0, 1) : [])])
}

const brokenCommand = 'YAML takes a command with ": " in it for an object: put it in quotes'

/** Whether a line of a script became an object: `- echo a: b`. */
function hasBrokenCommand(content: unknown): boolean {
  const { setup, update } = (content ?? {}) as { setup?: unknown; update?: unknown }
  const lines = [setup, update].flat()
  return lines.some(
    (line) => typeof line === 'object' && line !== null && Object.keys(line).some((key) => /\s/.test(key)),
  )
}

interface SchemaNode {
  properties?: Record<string, SchemaNode>
  additionalProperties?: SchemaNode | boolean
  items?: SchemaNode
}

/** The fields of the object at this place of the file. */
function fieldsAt(path: readonly PropertyKey[]): string[] {
  const root: SchemaNode = environmentJsonSchema() // made by zod from our own schema
  const node = path.reduce<SchemaNode | undefined>((at, part) => at && below(at, part), root)
  return Object.keys(node?.properties ?? {})
}

function below(
  { properties, additionalProperties: other, items }: SchemaNode,
  part: PropertyKey,
): SchemaNode | undefined {
  if (typeof part === 'number') return items
  return properties?.[String(part)] ?? (typeof other === 'object' ? other : undefined)
}

/** Four times what a file may have: an alias is there to save some repetition. */
const maxWrittenOut = 4 * maxEnvironmentFileBytes

/**
 * How long the content is with every alias in full; a file of some lines can stand for gigabytes, all of which would be kept
 * with the task. Stops soon after the limit. Pure.
 */
function writtenOut(content: unknown): number {
  const waiting = [content]
  let length = 0
  while (waiting.length > 0 && length <= maxWrittenOut) {
    const value = waiting.pop()
    length += typeof value === 'string' ? value.length + 1 : 1
    if (typeof value !== 'object' || value === null) continue
    for (const [key, item] of Object.entries(value)) {
      length += key.length
      waiting.push(item)
    }
  }
  return length
}

function yamlOf(text: string, name: string): unknown {
  try {
    return load(text)
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    const { mark } = error
    const line = mark ? `line ${mark.line + 1}, column ${mark.column + 1}: ` : ''
    throw invalid(name, `${line}${error.reason}`, error)
  }
}

function invalid(name: string, problem: string, cause?: unknown): TaskError {
  return new TaskError('EnvironmentInvalid', `${name}: ${problem}`, {
    hint: 'Check it with `corral env validate`; docs/environments.md has every field.',
    ...(cause ? { cause } : {}),
  })
}

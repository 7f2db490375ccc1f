import {
  type EnvironmentRequest,
  environmentFilePath,
  environmentFileSchema,
  environmentRequest,
  issueWords,
} from '@corral/protocol'
import { load, YAMLException } from 'js-yaml'
import { TaskError } from '../task-error.js'

/** Reads the text of an environment file. `EnvironmentInvalid` names the field or the line that is wrong. */
export function parseEnvironmentFile(text: string, name: string = environmentFilePath): EnvironmentRequest {
  const read = environmentFileSchema.safeParse(yamlOf(text, name))
  if (read.success) return environmentRequest(read.data)
  throw invalid(name, issueWords(read.error.issues, 'the file').slice(0, 5).join('; '))
}

function yamlOf(text: string, name: string): unknown {
  try {
    return load(text)
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    const line = error.mark ? `line ${error.mark.line + 1}: ` : ''
    throw invalid(name, `${line}${error.reason}`, error)
  }
}

function invalid(name: string, problem: string, cause?: unknown): TaskError {
  return new TaskError('EnvironmentInvalid', `${name}: ${problem}`, {
    hint: 'Check it with `corral env validate`; docs/environments.md has every field.',
    ...(cause ? { cause } : {}),
  })
}

import type { ApiRequest } from '@corral/ports'
import { apiError, badRequest, unsupportedMediaType } from '../errors/api-error.js'
import { copyJson, isJsonObject, type JsonObject } from '../objects/plain-json.js'
import { duplicateFields } from './duplicate-fields.js'

const ACCEPTED = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf']

/** The media type of the body without parameters, in lower case; empty when none is named. */
export const mediaType = (request: ApiRequest): string =>
  (request.headers['content-type'] ?? '').split(';')[0]!.trim().toLowerCase()

/** Whether there is anything in the body at all. */
export function hasBody(request: ApiRequest): boolean {
  if (request.body === undefined) return false
  return !(request.body instanceof Uint8Array) || request.body.length > 0
}

/**
 * The body as a new object without other references; 400 when it cannot be decoded, 415 for a type we do not read. Fields that
 * stand twice in the text are added to `duplicates`, where the caller wants to know.
 */
export async function readObject(request: ApiRequest, duplicates?: string[]): Promise<JsonObject> {
  const value = await readValue(request, mediaType(request), duplicates)
  if (!isJsonObject(value)) throw badRequest('the body of the request must be an object')
  return value
}

/** As `readObject`, for the patch types: the media type has been looked at already and the body is JSON or YAML. */
export async function readPatch(request: ApiRequest, isYaml: boolean, duplicates?: string[]): Promise<unknown> {
  return readValue(request, isYaml ? 'application/yaml' : 'application/json', duplicates)
}

async function readValue(request: ApiRequest, type: string, duplicates?: string[]): Promise<unknown> {
  const { body } = request
  if (body === undefined) throw badRequest('the request needs a body')
  if (!(body instanceof Uint8Array)) return copyJson(body)
  switch (type) {
    case '':
    case 'application/json':
      return parseJson(body, duplicates)
    case 'application/yaml':
    case 'application/apply-patch+yaml':
      return parseYaml(body, duplicates)
    case 'application/vnd.kubernetes.protobuf': {
      const { decodeProtobuf } = await import('../protobuf/index.js')
      return decodeProtobuf(body)
    }
    default:
      throw unsupportedMediaType(ACCEPTED)
  }
}

function parseJson(bytes: Uint8Array, duplicates?: string[]): unknown {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
  try {
    const value: unknown = JSON.parse(text)
    duplicates?.push(...duplicateFields(text))
    return value
  } catch (error) {
    throw apiError(400, 'BadRequest', `couldn't get version/kind; json parse error: ${(error as Error).message}`)
  }
}

async function parseYaml(bytes: Uint8Array, duplicates?: string[]): Promise<unknown> {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
  // Most "YAML" bodies are JSON, and then the YAML parser need not be loaded.
  if (text.trimStart().startsWith('{')) {
    try {
      const value: unknown = JSON.parse(text)
      duplicates?.push(...duplicateFields(text))
      return value
    } catch {
      // Flow-style YAML looks alike: the YAML parser decides.
    }
  }
  const { parseYamlText } = await import('./yaml-body.js')
  return parseYamlText(text, duplicates)
}

import type { ApiRequest, ApiResponse } from '@corral/ports'
import { acceptClauses, isKnownForm } from './accept-header.js'

/** The answer as its client wants to read it: in YAML, or indented for the eyes of a person. */
export function inWantedFormat(request: ApiRequest, response: ApiResponse): ApiResponse | Promise<ApiResponse> {
  if (response.body.type !== 'object') return response
  const { accept = '', 'user-agent': agent = '' } = request.headers
  if (accept.includes('yaml') && prefersYaml(accept)) return inYaml(response)
  if (request.query.size === 0 && !READS_TEXT.test(agent)) return response
  return isIndented(request.query, agent) ? indented(response) : response
}

function prefersYaml(accept: string): boolean {
  return acceptClauses(accept).find(isKnownForm)?.format === 'yaml'
}

/** Programs whose output people look at. */
const READS_TEXT = /^(?:curl|Wget|Mozilla\/5\.0)/
const TRUE = ['1', 't', 'T', 'TRUE', 'true', 'True']

function isIndented(query: URLSearchParams, agent: string): boolean {
  const wish = query.get('pretty')
  return wish ? TRUE.includes(wish) : READS_TEXT.test(agent)
}

function indented(response: ApiResponse): ApiResponse {
  const { body } = response
  if (body.type !== 'object') return response
  return { ...response, body: { ...body, json: () => JSON.stringify(JSON.parse(body.json()), null, 2) } }
}

async function inYaml(response: ApiResponse): Promise<ApiResponse> {
  const { body, headers } = response
  if (body.type !== 'object') return response
  const { dump } = await import('js-yaml')
  // As kubectl writes it, keys in order and lists at the level of their key. Text that a reader of any version of YAML
  // could take for something else is quoted.
  const text = dump(JSON.parse(body.json()), {
    sortKeys: true,
    noRefs: true,
    lineWidth: -1,
    seqNoIndent: true,
    quoteStyle: 'double',
  })
  const contentType = (headers['content-type'] ?? '').replace(/^application\/json/, 'application/yaml')
  return {
    ...response,
    headers: { ...headers, 'content-type': contentType },
    body: { type: 'bytes', bytes: Buffer.from(text) },
  }
}

import type { ApiResponse } from '@corral/ports'
import { jsonHeaders, objectResponse } from '../request/responses.js'

const PROTOBUF = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'
const PROTOBUF_ASKED = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'
const TITLE = 'Kubernetes'
const VERSION = 'unversioned'

/**
 * `/openapi/v2` without any definition. kubectl validates manifests of kind List by this document alone and takes a kind
 * that is not in it as valid; the server validates each object when it arrives. Undefined for any other path.
 */
export function openApiV2Response(path: string, accept: string): ApiResponse | undefined {
  if (path !== '/openapi/v2') return undefined
  if (!accept.includes(PROTOBUF) && !accept.includes(PROTOBUF_ASKED)) {
    return objectResponse(200, { swagger: '2.0', info: { title: TITLE, version: VERSION }, paths: {}, definitions: {} })
  }
  const text = (field: number, value: string): Buffer =>
    Buffer.concat([Buffer.from([(field << 3) | 2, value.length]), Buffer.from(value)])
  const info = Buffer.concat([text(1, TITLE), text(2, VERSION)])
  const bytes = Buffer.concat([text(1, '2.0'), Buffer.from([(2 << 3) | 2, info.length]), info])
  return { status: 200, headers: jsonHeaders([], PROTOBUF), body: { type: 'bytes', bytes } }
}

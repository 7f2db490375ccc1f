import { type FieldTable, fieldTable, KubeError } from '@corral/resources'
import type { JsonRecord } from '../schema/json-value.js'
import { decodeMessage } from './decode-message.js'
import { bytesOf, text } from './scalars.js'
import { malformed, readFields } from './wire.js'

const MAGIC = [0x6b, 0x38, 0x73, 0x00]

/** Whether a body carries Kubernetes' protobuf envelope. */
export function isProtobuf(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, i) => bytes[i] === byte)
}

interface Envelope {
  readonly apiVersion: string
  readonly kind: string
  readonly raw: Uint8Array
}

/**
 * The object in a `k8s\0` envelope, as plain JSON with `apiVersion` and `kind`. Throws `BadRequest` for malformed bytes
 * and for kinds the table does not have; those have no protobuf form.
 */
export function decodeProtobuf(bytes: Uint8Array, table: FieldTable = fieldTable): JsonRecord {
  if (!isProtobuf(bytes)) throw malformed('the k8s prefix is missing')
  const { apiVersion, kind, raw } = readEnvelope(bytes.subarray(MAGIC.length))
  const type = table.forKind(apiVersion, kind)
  if (!type) {
    throw new KubeError('BadRequest', `no kind "${kind}" is registered for version "${apiVersion}" in protobuf`, {
      status: 400,
    })
  }
  return { apiVersion, kind, ...decodeMessage(raw, type, table) }
}

function readEnvelope(bytes: Uint8Array): Envelope {
  let apiVersion = ''
  let kind = ''
  let raw = new Uint8Array()
  for (const { number, value } of readFields(bytes)) {
    if (number === 1) {
      for (const member of readFields(bytesOf(value))) {
        if (member.number === 1) apiVersion = text(bytesOf(member.value))
        else if (member.number === 2) kind = text(bytesOf(member.value))
      }
    } else if (number === 2) raw = new Uint8Array(bytesOf(value))
    else if (number === 3 && bytesOf(value).length > 0) throw malformed('the content is encoded')
  }
  return { apiVersion, kind, raw }
}

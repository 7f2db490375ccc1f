/** What a server said to one request. */
export interface Answered {
  readonly status: number
  readonly warnings: readonly string[]
  readonly body: unknown
}

const times = new Set(['creationTimestamp', 'deletionTimestamp', 'lastTransitionTime', 'time'])
const identity = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g
const versionInText = /(object meta: |in record \()\d+/g
/** The warning of kinds the embedded server keeps without acting on them. */
const inert = /is stored but not acted upon/

/**
 * The answer without what differs from run to run (ids, versions, the time, addresses that were free) and without how a
 * program in Go words its trouble with reading a body.
 */
export function masked({ status, warnings, body }: Answered, namespace: string): unknown {
  const told = warnings.filter((text) => !inert.test(text))
  return maskedValue({ status, ...(told.length > 0 ? { warnings: told } : {}), body: comparable(body) }, '', namespace)
}

function comparable(body: unknown): unknown {
  if (body === null || typeof body !== 'object') return body
  const { kind, status, reason, message, code, details } = body as Record<string, unknown>
  if (kind !== 'Status' || status !== 'Failure') return body
  const causes = (details as { causes?: { field?: string }[] } | undefined)?.causes
  const isWording = wordings.has(String(reason)) && !String(message).includes('strict decoding error')
  // A patch that leaves no object is shown in full, with the decoder's own trouble; so is how a pod would change.
  if (isWording || causes?.some(({ field }) => field === 'patch'))
    return { code, reason, ...(causes ? { fields: causes.map(({ field }) => field) } : {}) }
  return JSON.parse(JSON.stringify({ code, reason, message, details }).replaceAll(/\\n@@(?:[^"\\]|\\.)*/g, ''))
}

/** Reasons whose messages are a matter of taste. */
const wordings = new Set(['BadRequest', 'NotAcceptable', 'UnsupportedMediaType'])

function maskedValue(value: unknown, field: string, namespace: string): unknown {
  if (typeof value === 'string') return maskedText(value, field, namespace)
  if (Array.isArray(value)) return value.map((item) => maskedValue(item, field, namespace))
  if (value === null || typeof value !== 'object') return value
  const entries = Object.entries(value).filter(([name, item]) => !isOwn(field, name, item))
  const sorted = entries.sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(sorted.map(([name, item]) => [name, maskedValue(item, name, namespace)]))
}

/** Columns are described in words of each server's own; the real one also guards volumes that pods may use. */
function isOwn(parent: string, name: string, value: unknown): boolean {
  if (parent === 'columnDefinitions') return name === 'description'
  return name === 'finalizers' && Array.isArray(value) && value.join() === 'kubernetes.io/pvc-protection'
}

function maskedText(text: string, field: string, namespace: string): string {
  if (times.has(field) && /^2\d{3}-/.test(text)) return 'TIME'
  if (field === 'resourceVersion' && text !== '') return 'VERSION'
  if ((field === 'clusterIP' || field === 'clusterIPs') && text.startsWith('10.')) return 'ADDRESS'
  return text.replaceAll(namespace, '{ns}').replace(identity, 'UID').replace(versionInText, '$1VERSION')
}

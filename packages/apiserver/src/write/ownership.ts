import type { KindDefinition } from '../registry/kind-definition.js'
import type { JsonObject } from '../store/plain-json.js'

/** Who writes, for the object's managedFields. */
export interface Writer {
  readonly manager: string
  readonly subresource: string
  readonly now: Date
}

/** Records in `next` which fields this write changed. Changes `next` only. */
export function recordOwnership(
  _kind: KindDefinition,
  _old: JsonObject | undefined,
  _next: JsonObject,
  _writer: Writer,
): void {}

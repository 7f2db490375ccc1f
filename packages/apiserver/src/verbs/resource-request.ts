import type { ApiRequest, ApiUser } from '@corral/ports'
import type { ServerContext } from '../context/server-context.js'
import type { KindDefinition } from '../registry/kind-definition.js'
import { managerFromUserAgent, parseWriteOptions } from '../request/query.js'
import { isApiError } from '../request/responses.js'
import type { WriteRequest } from '../write/create-object.js'

/** A request whose kind, place and user are known. */
export interface ResourceRequest {
  readonly request: ApiRequest
  readonly context: ServerContext
  readonly kind: KindDefinition
  /** Undefined for cluster-scoped kinds and for lists over all namespaces. */
  readonly namespace: string | undefined
  readonly name: string | undefined
  readonly subresource: string
  readonly user: ApiUser
}

/** The refusal of a write, which also tells what was found before it. */
export function warned(error: unknown, { warnings }: WriteRequest): unknown {
  if (isApiError(error) && warnings.length > 0) error.warnings = warnings
  return error
}

/** The options of a write, and where its warnings gather. Kinds that are stored only say so on every write. */
export function writeRequest(resource: ResourceRequest, optionsKind: string): WriteRequest & { force: boolean } {
  const { request, kind, user } = resource
  const options = parseWriteOptions(request.query, optionsKind)
  return {
    user,
    manager: options.fieldManager ?? managerFromUserAgent(request.headers['user-agent']),
    dryRun: options.dryRun,
    fieldValidation: options.fieldValidation,
    force: options.force,
    warnings: kind.warning ? [kind.warning] : [],
    duplicates: options.fieldValidation === 'Ignore' ? undefined : [],
  }
}

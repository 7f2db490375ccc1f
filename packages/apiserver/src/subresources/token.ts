import type { ApiResponse } from '@corral/resources'
import { TOKEN_ISSUER } from '../auth/token-authority.js'
import { badRequest, invalid, invalidValue, methodNotAllowed, notFound } from '../errors/api-error.js'
import { readObject } from '../request/body.js'
import { objectResponse } from '../request/responses.js'
import { isJsonObject } from '../store/plain-json.js'
import type { ResourceRequest } from '../verbs/resource-request.js'

const MIN_EXPIRATION_SECONDS = 600
const MAX_EXPIRATION_SECONDS = 2 ** 32

/** POST on a service account's token: a signed token that authenticates and may ask reviews. */
export async function tokenVerb(resource: ResourceRequest): Promise<ApiResponse> {
  const { request, context, kind, namespace = '', name = '' } = resource
  if (request.method !== 'POST') throw methodNotAllowed()
  const body = await readObject(request)
  const account = context.store.collection(kind.collection).find(namespace, name)
  if (!account) throw notFound(kind, name)
  const spec = isJsonObject(body.spec) ? body.spec : {}
  const audiences = Array.isArray(spec.audiences) ? spec.audiences.map(String) : []
  const seconds = typeof spec.expirationSeconds === 'number' ? spec.expirationSeconds : undefined
  if (seconds !== undefined) checkExpiration(seconds)
  const status = context.tokens.issue({ namespace, name, uid: account.metadata?.uid ?? '', audiences }, seconds)
  return objectResponse(201, {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: { name, namespace, creationTimestamp: account.metadata?.creationTimestamp },
    spec: { ...spec, audiences: audiences.length > 0 ? audiences : [TOKEN_ISSUER], expirationSeconds: seconds ?? 3600 },
    status,
  })
}

function checkExpiration(seconds: number): void {
  const field = 'spec.expirationSeconds'
  if (!Number.isSafeInteger(seconds)) throw badRequest(`${field}: ${seconds} is not a whole number of seconds`)
  const limit =
    seconds < MIN_EXPIRATION_SECONDS
      ? 'less than 10 minutes'
      : seconds > MAX_EXPIRATION_SECONDS
        ? 'larger than 2^32 seconds'
        : undefined
  if (limit === undefined) return
  const error = invalidValue(field, seconds, `may not specify a duration ${limit}`)
  throw invalid({ group: 'authentication.k8s.io', kind: 'TokenRequest' }, '', [error])
}

import type { ApiResponse } from '@corral/ports'
import { TOKEN_ISSUER } from '../auth/token-authority.js'
import { badRequest, conflict, invalid, invalidValue, methodNotAllowed, notFound } from '../errors/api-error.js'
import { isJsonObject, type JsonObject } from '../objects/plain-json.js'
import { readObject } from '../request/body.js'
import { objectResponse } from '../request/responses.js'
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
  checkName(body, name)
  const spec = isJsonObject(body.spec) ? body.spec : {}
  const audiences = Array.isArray(spec.audiences) ? spec.audiences.map(String) : []
  const seconds = typeof spec.expirationSeconds === 'number' ? spec.expirationSeconds : undefined
  if (seconds !== undefined) checkExpiration(seconds)
  if (isJsonObject(spec.boundObjectRef)) checkBound(resource, spec.boundObjectRef)
  const status = context.tokens.issue({ namespace, name, uid: account.metadata?.uid ?? '', audiences }, seconds)
  return objectResponse(201, {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: { name, namespace, creationTimestamp: account.metadata?.creationTimestamp },
    spec: { ...spec, audiences: audiences.length > 0 ? audiences : [TOKEN_ISSUER], expirationSeconds: seconds ?? 3600 },
    status,
  })
}

const TOKEN_REQUEST = { group: 'authentication.k8s.io', kind: 'TokenRequest' }

function checkName({ metadata }: JsonObject, name: string): void {
  const asked = isJsonObject(metadata) ? metadata.name : undefined
  if (!asked || asked === name) return
  const error = invalidValue('metadata.name', asked, 'must match the service account name if specified')
  throw invalid(TOKEN_REQUEST, name, [error])
}

const BOUND_TO: Readonly<Record<string, { plural: string; isNamespaced: boolean }>> = {
  Pod: { plural: 'pods', isNamespaced: true },
  Secret: { plural: 'secrets', isNamespaced: true },
  Node: { plural: 'nodes', isNamespaced: false },
}

/** What a token is bound to has to exist, and to be the one that is meant. */
function checkBound({ context, namespace = '' }: ResourceRequest, bound: JsonObject): void {
  const kind = String(bound.kind)
  const target = BOUND_TO[kind]
  if (!target) throw badRequest(`cannot bind token to object of type ${String(bound.apiVersion)}, Kind=${kind}`)
  const name = String(bound.name ?? '')
  const found = context.store.collection(target.plural).find(target.isNamespaced ? namespace : '', name)
  const named = { group: '', plural: target.plural, kind }
  if (!found) throw notFound(named, name)
  if (!bound.uid || bound.uid === found.metadata?.uid) return
  const why = `the UID in the bound object reference (${String(bound.uid)}) does not match the UID in record. The object might have been deleted and then recreated`
  throw conflict(named, name, why)
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
  throw invalid(TOKEN_REQUEST, '', [error])
}

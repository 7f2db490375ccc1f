import type { ApiResponse, LogStreamOptions } from '@corral/ports'
import { badRequest, forbiddenField, invalid } from '../errors/api-error.js'
import { queryFlag, queryInteger } from '../request/query.js'
import type { ResourceRequest } from '../verbs/resource-request.js'
import { findStreamTarget, type StreamTarget, streamsUnavailable } from './pod-streams.js'

/** GET on a pod's log: plain text, to the end of the container with `follow`. */
export async function logVerb(resource: ResourceRequest): Promise<ApiResponse> {
  const { request, context, name = '' } = resource
  const target = findStreamTarget(resource)
  const options = logOptions(request.query, target)
  // A pod without a node has no log and no error either.
  if (!target.isBound) return { status: 204, headers: {}, body: { type: 'empty' } }
  const waiting = target.status?.state?.waiting
  if (!options.previous && (waiting || !target.status)) {
    const reason = waiting?.reason ?? 'ContainerCreating'
    throw badRequest(`container "${target.container}" in pod "${name}" is waiting to start: ${reason}`)
  }
  const streams = context.podStreams()
  if (!streams) throw streamsUnavailable()
  const chunks = await streams.logs(target.pod, { ...options, ...(request.signal ? { signal: request.signal } : {}) })
  return {
    status: 200,
    headers: { 'content-type': 'text/plain', 'cache-control': 'no-cache, private' },
    body: { type: 'stream', chunks },
  }
}

function logOptions(query: URLSearchParams, { pod, container }: StreamTarget): LogStreamOptions {
  const sinceSeconds = queryInteger(query, 'sinceSeconds')
  const sinceTime = query.get('sinceTime') || undefined
  if (sinceTime && Number.isNaN(Date.parse(sinceTime)))
    throw badRequest(`sinceTime ${JSON.stringify(sinceTime)} is no time`)
  const tailLines = queryInteger(query, 'tailLines')
  const limitBytes = queryInteger(query, 'limitBytes')
  const errors = []
  if (sinceSeconds !== undefined && sinceTime !== undefined) {
    errors.push(forbiddenField('[]', 'at most one of `sinceTime` or `sinceSeconds` may be specified'))
  }
  for (const [field, value, least] of [
    ['tailLines', tailLines, 0],
    ['limitBytes', limitBytes, 1],
    ['sinceSeconds', sinceSeconds, 1],
  ] as const) {
    if (value === undefined || value >= least) continue
    errors.push({
      reason: 'FieldValueInvalid',
      field,
      message: `Invalid value: ${value}: must be greater than ${least === 0 ? 'or equal to 0' : '0'}`,
    })
  }
  if (errors.length > 0) throw invalid({ group: '', kind: 'PodLogOptions' }, pod.name, errors)
  return {
    container,
    follow: queryFlag(query, 'follow'),
    previous: queryFlag(query, 'previous'),
    timestamps: queryFlag(query, 'timestamps'),
    ...(sinceSeconds === undefined ? {} : { sinceSeconds }),
    ...(sinceTime === undefined ? {} : { sinceTime }),
    ...(tailLines === undefined ? {} : { tailLines }),
    ...(limitBytes === undefined ? {} : { limitBytes }),
  }
}

import type { ApiConnection, PodRef, PodStreams } from '@corral/ports'
import type { KubeObject } from '@corral/resources'
import { type PortUpgrade, type ProcessUpgrade, processStreams } from '@corral/streams'
import { apiError, badRequest, methodNotAllowed, notFound, unknownPath } from '../errors/api-error.js'
import type { ResourceRequest } from '../verbs/resource-request.js'

interface PodShape extends KubeObject {
  spec?: { nodeName?: string; containers?: { name: string }[]; initContainers?: { name: string }[] }
  status?: { phase?: string; containerStatuses?: ContainerStatus[]; initContainerStatuses?: ContainerStatus[] }
}

interface ContainerStatus {
  name: string
  state?: { waiting?: { reason?: string }; running?: object; terminated?: object }
}

/** A pod that can be streamed from, and the container meant. */
export interface StreamTarget {
  readonly pod: PodRef
  readonly container: string
  readonly isBound: boolean
  readonly status: ContainerStatus | undefined
}

/** Exec, attach and port-forward without an upgrade: what is wrong with the request itself is said first. */
export function upgradeRequired(resource: ResourceRequest): never {
  const { method } = resource.request
  if (method !== 'GET' && method !== 'POST') throw methodNotAllowed()
  if (resource.subresource === 'portforward') checkPortForward(resource)
  else checkProcess(resource)
  throw badRequest('Upgrade request required')
}

/** 503 while no node has said that it serves streams. */
export const streamsUnavailable = (): Error =>
  apiError(503, 'ServiceUnavailable', 'no node serves the streams of pods at the moment', { retryAfterSeconds: 1 })

/** Finds the pod and container a streaming request means; refuses with the Status a kubelet-backed server would give. */
export function findStreamTarget(resource: ResourceRequest): StreamTarget {
  const pod = findPod(resource)
  const container = containerOf(pod, resource.request.query.get('container'))
  const statuses = [...(pod.status?.containerStatuses ?? []), ...(pod.status?.initContainerStatuses ?? [])]
  const isBound = Boolean(pod.spec?.nodeName)
  return { pod: refOf(pod), container, isBound, status: statuses.find((status) => status.name === container) }
}

function findPod({ context, kind, namespace = '', name = '' }: ResourceRequest): PodShape {
  const pod = context.store.collection(kind.collection).find(namespace, name) as PodShape | undefined
  if (!pod) throw notFound(kind, name)
  return pod
}

const refOf = (pod: PodShape): PodRef => ({
  namespace: pod.metadata?.namespace ?? '',
  name: pod.metadata?.name ?? '',
  uid: pod.metadata?.uid ?? '',
})

function containerOf(pod: PodShape, wanted: string | null): string {
  const names = (pod.spec?.containers ?? []).map((container) => container.name)
  const initNames = (pod.spec?.initContainers ?? []).map((container) => container.name)
  const podName = pod.metadata?.name ?? ''
  if (wanted) {
    if (names.includes(wanted) || initNames.includes(wanted)) return wanted
    throw badRequest(`container ${wanted} is not valid for pod ${podName}`)
  }
  if (names.length === 1) return names[0]!
  const init = initNames.length > 0 ? ` or one of the init containers: [${initNames.join(' ')}]` : ''
  throw badRequest(`a container name must be specified for pod ${podName}, choose one of: [${names.join(' ')}]${init}`)
}

/** Opens what an exec, attach or port-forward request asks for. Everything is checked before anything starts. */
export async function openConnection(
  resource: ResourceRequest,
  streams: PodStreams | undefined,
): Promise<ApiConnection> {
  const { request, subresource } = resource
  const signal = request.signal ? { signal: request.signal } : {}
  if (subresource === 'portforward') {
    const { pod } = checkPortForward(resource)
    const port = Number(request.query.get('ports') ?? request.query.get('port'))
    if (!Number.isInteger(port) || port < 1 || port > 65_535) throw badRequest('ports must name one port')
    return { type: 'port', stream: await serve(streams).portForward(pod, port, signal) }
  }
  if (subresource !== 'exec' && subresource !== 'attach') throw unknownPath()
  const { pod, container } = checkProcess(resource)
  const options = { container, ...processStreams(request.query), ...signal }
  if (subresource === 'attach') return { type: 'process', process: await serve(streams).attach(pod, options) }
  const command = request.query.getAll('command')
  return { type: 'process', process: await serve(streams).exec(pod, { ...options, command }) }
}

/** What to do with a socket once its client has been upgraded. */
export type StreamPlan = Pick<ProcessUpgrade, 'kind' | 'start'> | Pick<PortUpgrade, 'kind' | 'dial'>

/** Checks a streaming request that arrives over a socket; the plan is carried out after the handshake. */
export function planStream(resource: ResourceRequest, streams: () => PodStreams | undefined): StreamPlan {
  const { request, subresource } = resource
  if (subresource === 'portforward') {
    const { pod } = checkPortForward(resource)
    serve(streams())
    return { kind: 'portforward', dial: (port, signal) => serve(streams()).portForward(pod, port, { signal }) }
  }
  if (subresource !== 'exec' && subresource !== 'attach') throw unknownPath()
  const { pod, container } = checkProcess(resource)
  serve(streams())
  return {
    kind: subresource,
    start(asked, signal) {
      const options = { container, ...asked, signal }
      if (subresource === 'attach') return serve(streams()).attach(pod, options)
      return serve(streams()).exec(pod, { ...options, command: request.query.getAll('command') })
    },
  }
}

/** The checks of exec and attach that come before the upgrade. */
export function checkProcess(resource: ResourceRequest): StreamTarget {
  const target = findStreamTarget(resource)
  const pod = findPod(resource)
  const { name = '' } = pod.metadata ?? {}
  if (pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed') {
    throw badRequest(`cannot exec into a container in a completed pod; current phase is ${pod.status.phase}`)
  }
  if (!pod.spec?.nodeName) throw badRequest(`pod ${name} does not have a host assigned`)
  if (target.status && !target.status.state?.running) {
    throw apiError(404, 'NotFound', `container not found ("${target.container}")`)
  }
  const { query } = resource.request
  if (resource.subresource === 'exec' && query.getAll('command').length === 0) {
    throw badRequest('you must specify at least one command for the container')
  }
  const asked = processStreams(query)
  if (!asked.stdin && !asked.stdout && !asked.stderr) {
    throw badRequest('you must specify at least 1 of stdin, stdout, stderr')
  }
  return target
}

/** The checks of port-forward that come before the upgrade. */
export function checkPortForward(resource: ResourceRequest): { pod: PodRef } {
  const pod = findPod(resource)
  if (!pod.spec?.nodeName) throw badRequest(`pod ${pod.metadata?.name} does not have a host assigned`)
  if (pod.status?.phase !== 'Running') {
    throw badRequest(`pod is not running; current phase is ${pod.status?.phase ?? 'Unknown'}`)
  }
  return { pod: refOf(pod) }
}

function serve(streams: PodStreams | undefined): PodStreams {
  if (!streams) throw streamsUnavailable()
  return streams
}

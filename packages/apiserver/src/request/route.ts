import { badRequest } from '../errors/api-error.js'

/** A path that names a resource. `plural` may still turn out not to exist. */
export interface ResourceRoute {
  readonly apiVersion: string
  readonly namespace?: string
  readonly plural: string
  readonly name?: string
  readonly subresource?: string
}

/** Reads a resource path; undefined for everything else (discovery, health, version, OpenAPI). */
export function parseResourcePath(path: string): ResourceRoute | undefined {
  const segments = path.split('/')
  // Paths begin with a slash, so segment 0 is empty; a trailing slash leaves an empty last one.
  if (segments.at(-1) === '') segments.pop()
  let next: number
  let apiVersion: string
  if (segments[1] === 'api') {
    apiVersion = segments[2] ?? ''
    next = 3
  } else if (segments[1] === 'apis') {
    apiVersion = `${segments[2]}/${segments[3]}`
    next = 4
  } else return undefined
  const rest = segments.length - next
  if (rest < 1) return undefined
  if (path.includes('%'))
    for (let index = next; index < segments.length; index++) segments[index] = decode(segments[index]!)
  if (segments[next] !== 'namespaces' || rest < 3 || isNamespaceSubresource(apiVersion, segments[next + 2]!, rest)) {
    return rest > 3 ? undefined : build(apiVersion, undefined, segments, next)
  }
  return rest > 5 ? undefined : build(apiVersion, segments[next + 1]!, segments, next + 2)
}

function isNamespaceSubresource(apiVersion: string, segment: string, rest: number): boolean {
  return apiVersion === 'v1' && rest === 3 && (segment === 'status' || segment === 'finalize')
}

function build(apiVersion: string, namespace: string | undefined, segments: string[], at: number): ResourceRoute {
  const name = segments[at + 1]
  const subresource = segments[at + 2]
  return {
    apiVersion,
    plural: segments[at]!,
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(subresource === undefined ? {} : { subresource }),
  }
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw badRequest(`invalid URL escape in ${JSON.stringify(segment)}`)
  }
}

import type { ApiResponse } from '@corral/ports'
import { unknownPath } from '../errors/api-error.js'
import { jsonText } from '../objects/json-text.js'
import type { KindDefinition, SubresourceDefinition } from '../registry/kind-definition.js'
import type { KindRegistry } from '../registry/kind-registry.js'
import { type AcceptClause, acceptClauses, isKnownForm, notAcceptable } from '../request/accept-header.js'
import { jsonHeaders, objectResponse } from '../request/responses.js'

type AggregatedVersion = 'v2' | 'v2beta1'

/** Answers `/`, `/api`, `/apis`, `/apis/{group}` and `/apis/{group}/{version}`; undefined for any other path. */
export function discoveryResponse(registry: KindRegistry, path: string, accept: string): ApiResponse | undefined {
  const segments = path.split('/').filter((segment) => segment !== '')
  if (segments.length === 0) return objectResponse(200, { paths: allPaths(registry) })
  if (segments[0] !== 'api' && segments[0] !== 'apis') return undefined
  const clauses = servedClauses(accept)
  if (segments[0] === 'api') {
    if (segments.length === 1) return rootResponse(registry, clauses, true)
    if (segments.length === 2) return resourceListResponse(registry, segments[1]!)
  }
  if (segments[0] === 'apis') {
    if (segments.length === 1) return rootResponse(registry, clauses, false)
    if (segments.length === 2) return groupResponse(registry, segments[1]!)
    if (segments.length === 3) return resourceListResponse(registry, `${segments[1]}/${segments[2]}`)
  }
  return undefined
}

function allPaths(registry: KindRegistry): string[] {
  const groups = [...registry.groups].flatMap(([group, versions]) => {
    const path = group === '' ? '/api' : `/apis/${group}`
    return [path, ...versions.map((version) => `${path}/${version}`)]
  })
  return ['/apis', '/healthz', '/livez', '/openapi/v3', '/readyz', '/version', ...groups].sort()
}

function rootResponse(registry: KindRegistry, clauses: readonly AcceptClause[], isCore: boolean): ApiResponse {
  const aggregated = aggregatedVersion(clauses)
  if (aggregated) {
    const value = aggregatedDocument(registry, isCore, aggregated)
    const contentType = `application/json;g=apidiscovery.k8s.io;v=${aggregated};as=APIGroupDiscoveryList`
    return {
      status: 200,
      headers: { ...jsonHeaders([], contentType), vary: 'Accept' },
      body: { type: 'object', value, json: () => jsonText(value) },
    }
  }
  if (isCore) {
    return objectResponse(200, {
      kind: 'APIVersions',
      versions: registry.groups.get('') ?? [],
      serverAddressByClientCIDRs: [],
    })
  }
  const groups = [...registry.groups]
    .filter(([group]) => group !== '')
    .map(([group, versions]) => apiGroup(group, versions))
  return objectResponse(200, { kind: 'APIGroupList', apiVersion: 'v1', groups })
}

/** The most wanted clause decides: the aggregated document in one of its versions, or the separate ones. */
function aggregatedVersion(clauses: readonly AcceptClause[]): AggregatedVersion | undefined {
  const wanted = clauses.find((clause) => clause.format !== 'protobuf') ?? clauses[0]
  return wanted?.parameters.has('as') ? (wanted.parameters.get('v') as AggregatedVersion) : undefined
}

/** What the client asks for that discovery has a document for; 406 when that is nothing. */
function servedClauses(accept: string): AcceptClause[] {
  const isOurs = (clause: AcceptClause): boolean =>
    isKnownForm(clause) && (clause.parameters.get('g') ?? 'apidiscovery.k8s.io') === 'apidiscovery.k8s.io'
  const clauses = acceptClauses(accept).filter(isOurs)
  if (clauses.length === 0) throw notAcceptable()
  return clauses
}

function apiGroup(group: string, versions: readonly string[]): object {
  const list = versions.map((version) => ({ groupVersion: `${group}/${version}`, version }))
  return { name: group, versions: list, preferredVersion: list[0] }
}

function groupResponse(registry: KindRegistry, group: string): ApiResponse {
  const versions = registry.groups.get(group)
  if (!versions || group === '') throw unknownPath()
  return objectResponse(200, { kind: 'APIGroup', apiVersion: 'v1', ...apiGroup(group, versions) })
}

function resourceListResponse(registry: KindRegistry, groupVersion: string): ApiResponse {
  const kinds = registry.inGroupVersion(groupVersion)
  if (kinds.length === 0) throw unknownPath()
  const resources = kinds.toSorted(byPlural).flatMap((kind) => [
    {
      name: kind.plural,
      singularName: kind.singular,
      namespaced: kind.namespaced,
      kind: kind.kind,
      verbs: kind.verbs,
      ...(kind.shortNames.length > 0 ? { shortNames: kind.shortNames } : {}),
      ...(kind.categories.length > 0 ? { categories: kind.categories } : {}),
    },
    ...kind.subresources.map((row) => ({
      name: `${kind.plural}/${row.name}`,
      singularName: '',
      namespaced: kind.namespaced,
      ...(isForeign(kind, row) ? { group: row.group, version: row.version } : {}),
      kind: row.kind,
      verbs: row.verbs,
    })),
  ])
  return objectResponse(200, { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources })
}

function aggregatedDocument(registry: KindRegistry, isCore: boolean, version: AggregatedVersion): object {
  const items = [...registry.groups]
    .filter(([group]) => (group === '') === isCore)
    .map(([group, versions]) => ({
      metadata: { ...(group === '' ? {} : { name: group }), creationTimestamp: null },
      versions: versions.map((name) => ({
        version: name,
        resources: registry
          .inGroupVersion(group === '' ? name : `${group}/${name}`)
          .toSorted(byPlural)
          .map(aggregatedResource),
        freshness: 'Current',
      })),
    }))
  return { kind: 'APIGroupDiscoveryList', apiVersion: `apidiscovery.k8s.io/${version}`, metadata: {}, items }
}

function aggregatedResource(kind: KindDefinition): object {
  const { group, version } = kind
  return {
    resource: kind.plural,
    responseKind: { group, version, kind: kind.kind },
    scope: kind.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: kind.singular,
    verbs: kind.verbs,
    ...(kind.shortNames.length > 0 ? { shortNames: kind.shortNames } : {}),
    ...(kind.categories.length > 0 ? { categories: kind.categories } : {}),
    ...(kind.subresources.length > 0
      ? {
          subresources: kind.subresources.map((row) => ({
            subresource: row.name,
            responseKind: { group: row.group, version: row.version, kind: row.kind },
            verbs: row.verbs,
          })),
        }
      : {}),
  }
}

const byPlural = (a: KindDefinition, b: KindDefinition): number => (a.plural < b.plural ? -1 : 1)

const isForeign = (kind: KindDefinition, row: SubresourceDefinition): boolean =>
  row.group !== kind.group || row.version !== kind.version

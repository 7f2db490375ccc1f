import { type KubeObject, nameHash, type Stored } from '@corral/resources'

/** Every object of a namespace that the controllers may touch, by kind. */
export type Contents = Readonly<Record<string, readonly Stored<KubeObject>[]>>

type Json = string | number | boolean | null | Json[] | { [key: string]: Json }

const dropped = new Set(['uid', 'resourceVersion', 'managedFields', 'creationTimestamp', 'selfLink'])
const podSpecFields = new Set([
  'automountServiceAccountToken',
  'containers',
  'initContainers',
  'dnsConfig',
  'dnsPolicy',
  'nodeName',
  'volumes',
])
const containerFields = new Set(['name', 'image', 'env', 'envFrom', 'ports', 'volumeMounts', 'restartPolicy'])
const serviceSpecFields = new Set(['clusterIP', 'ports', 'publishNotReadyAddresses', 'selector', 'type'])
const eventFields = new Set(['action', 'note', 'reason', 'regarding', 'reportingController', 'type'])

/**
 * What a reader of the API sees, with everything replaced that differs from run to run: names that the server made up
 * (told apart by the claim that owns them), uids, times, addresses, versions.
 */
export function normalize(contents: Contents, namespace: string): Record<string, Json[]> {
  const replace = replacer(contents, namespace)
  const result: Record<string, Json[]> = {}
  for (const [kind, objects] of Object.entries(contents)) {
    const seen = objects
      .filter((object) => kind !== 'events' || isOurs(object))
      .map((object) => replace(reduce(kind, object)))
    // By name first, so that the same objects of two runs stand side by side.
    const order = new Map(seen.map((value) => [value, `${nameOf(value)} ${JSON.stringify(value)}`]))
    if (seen.length > 0) result[kind] = seen.sort((a, b) => ((order.get(a) ?? '') < (order.get(b) ?? '') ? -1 : 1))
  }
  return result
}

/** Events of the controllers under test, not of others in the cluster. */
const isOurs = (event: Stored<KubeObject>): boolean =>
  /^sandbox\w*-controller$/.test((event as { reportingController?: string }).reportingController ?? '')

const nameOf = (value: Json): string => {
  const { metadata, reason } = value as { metadata?: { name?: string }; reason?: string }
  return metadata?.name ?? reason ?? ''
}

/** The parts of an object that controllers decide; defaults of the server are another suite's business. */
function reduce(kind: string, object: Stored<KubeObject>): Json {
  const copy = structuredClone(object) as unknown as Record<string, Json> // plain JSON from the server
  delete copy.apiVersion
  delete copy.kind
  const metadata = copy.metadata as Record<string, Json>
  for (const key of dropped) delete metadata[key]
  delete metadata.namespace
  if (kind === 'events') {
    delete copy.metadata
    keep(copy, eventFields)
    const regarding = copy.regarding as Record<string, Json>
    for (const key of [...dropped, 'namespace']) delete regarding[key]
  }
  if (kind === 'pods') {
    delete copy.status
    const spec = copy.spec as Record<string, Json>
    keep(spec, podSpecFields)
    for (const list of [spec.containers, spec.initContainers])
      for (const container of (list as Record<string, Json>[] | undefined) ?? []) keep(container, containerFields)
  }
  if (kind === 'services') {
    delete copy.status
    keep(copy.spec as Record<string, Json>, serviceSpecFields)
  }
  if (kind === 'persistentvolumeclaims') {
    delete copy.status
    delete metadata.finalizers
    delete (copy.spec as Record<string, Json>).volumeMode
  }
  if (kind === 'networkpolicies') delete copy.status
  return copy
}

function keep(object: Record<string, Json>, fields: ReadonlySet<string>): void {
  for (const key of Object.keys(object)) if (!fields.has(key)) delete object[key]
}

function replacer(contents: Contents, namespace: string): (value: Json) => Json {
  const names = generatedNames(contents)
  const words = new Map<string, string>([[namespace, '<namespace>']])
  for (const [name, token] of names) {
    words.set(name, token)
    words.set(nameHash(name), `<hash of ${token}>`)
  }
  for (const [kind, objects] of Object.entries(contents))
    for (const { metadata } of objects)
      words.set(metadata.uid, `<uid of ${kind}/${names.get(metadata.name) ?? metadata.name}>`)
  const longestFirst = [...words].sort(([a], [b]) => b.length - a.length)

  const text = (value: string): string => {
    let result = value
    for (const [word, token] of longestFirst) result = result.replaceAll(word, token)
    return result
      .replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, '<time>')
      .replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z/g, '<precise time>')
      .replace(/\b100\.64\.\d+\.\d+\b/g, '<address>')
      .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, '<uid of something gone>')
      .replace(/\b(pool[a-z0-9]*)-[bcdfghjklmnpqrstvwxz2456789]{5}\b/g, '$1-<gone>')
  }
  const walk = (value: Json): Json => {
    if (typeof value === 'string') return text(value)
    if (Array.isArray(value)) return value.map(walk)
    if (value === null || typeof value !== 'object') return value
    return Object.fromEntries(
      Object.keys(value)
        .sort()
        .map((key) => [key, walk(value[key] ?? null)]),
    )
  }
  return walk
}

/** Members of pools, named for whom they belong to. Unclaimed members of one pool are all alike. */
function generatedNames(contents: Contents): Map<string, string> {
  const names = new Map<string, string>()
  for (const { metadata } of contents.sandboxes ?? []) {
    if (!metadata.generateName) continue
    const owner = metadata.ownerReferences?.find((reference) => reference.controller)
    const whose = owner?.kind === 'SandboxClaim' ? `of ${owner.name}` : owner ? 'free' : 'orphan'
    names.set(metadata.name, `${metadata.generateName}<${whose}>`)
  }
  return names
}

import { createHash } from 'node:crypto'
import { type FieldTable, fieldTable } from '@corral/resources'
import { openApiDocument } from './open-api-document.js'
import type { OpenApiKind } from './open-api-kind.js'

/** A document as bytes, with the hash its link carries. */
export interface OpenApiPart {
  readonly hash: string
  readonly json: Uint8Array
}

/** The answers to `/openapi/v3` for one set of kinds. Make a new one when the kinds change. */
export interface OpenApiCatalog {
  /** `{ paths: { 'api/v1': { serverRelativeURL } } }` for every group-version served. */
  index(): { readonly paths: Readonly<Record<string, { readonly serverRelativeURL: string }>> }
  /** The document behind `api/v1` or `apis/<group>/<version>`; undefined for a path that is not served. */
  document(path: string): OpenApiPart | undefined
}

/** Documents are built when first asked for, and hashed from what they are built of. */
export function openApiCatalog(kinds: readonly OpenApiKind[], table: FieldTable = fieldTable): OpenApiCatalog {
  const byPath = new Map<string, OpenApiKind[]>()
  for (const kind of kinds) {
    const path = kind.apiVersion.includes('/') ? `apis/${kind.apiVersion}` : `api/${kind.apiVersion}`
    const list = byPath.get(path)
    if (list) list.push(kind)
    else byPath.set(path, [kind])
  }
  const hashes = new Map<string, string>()
  const parts = new Map<string, OpenApiPart>()
  const hashOf = (path: string, members: readonly OpenApiKind[]): string => {
    let hash = hashes.get(path)
    if (hash === undefined) {
      hash = contentHash(members)
      hashes.set(path, hash)
    }
    return hash
  }

  return {
    index() {
      const paths: Record<string, { serverRelativeURL: string }> = {}
      for (const [path, members] of byPath) {
        paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${hashOf(path, members)}` }
      }
      return { paths }
    },
    document(path) {
      const members = byPath.get(path)
      if (!members) return undefined
      let part = parts.get(path)
      if (!part) {
        const document = openApiDocument(members[0]!.apiVersion, members, table)
        part = { hash: hashOf(path, members), json: new TextEncoder().encode(JSON.stringify(document)) }
        parts.set(path, part)
      }
      return part
    },
  }
}

/** Hex and upper case, as kubectl's cache has it from other servers. */
function contentHash(kinds: readonly OpenApiKind[]): string {
  const hash = createHash('sha256')
  for (const kind of kinds) {
    const { apiVersion, plural, namespaced, typeName, schema } = kind
    hash.update(JSON.stringify([apiVersion, kind.kind, plural, namespaced, typeName, schema]))
  }
  return hash.digest('hex').toUpperCase()
}

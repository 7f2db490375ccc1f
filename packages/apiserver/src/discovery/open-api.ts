import type { ApiResponse } from '@corral/ports'
import { fieldTable } from '@corral/resources'
import { unknownPath } from '../errors/api-error.js'
import type { OpenApiCatalog, OpenApiKind } from '../openapi/index.js'
import type { KindDefinition } from '../registry/kind-definition.js'
import type { KindRegistry } from '../registry/kind-registry.js'
import { jsonHeaders, objectResponse } from '../request/responses.js'
import type { JsonSchema } from '../schema/index.js'

const ROOT = '/openapi/v3'

/** Answers `/openapi/v3` and below. Documents are made when asked for and kept until kinds come or go. */
export class OpenApiPages {
  private catalog: OpenApiCatalog | undefined
  private madeFor = -1

  constructor(private readonly registry: KindRegistry) {}

  /** The answer; undefined when the path is not one of these. */
  async respond(path: string, query: URLSearchParams): Promise<ApiResponse | undefined> {
    if (!path.startsWith('/openapi')) return undefined
    if (path === ROOT || path === `${ROOT}/`) return objectResponse(200, (await this.current()).index())
    const part = path.startsWith(`${ROOT}/`) ? (await this.current()).document(path.slice(ROOT.length + 1)) : undefined
    if (!part) throw unknownPath()
    const wanted = query.get('hash')
    const isPinned = wanted === part.hash
    if (wanted !== null && !isPinned) {
      const location = `${path}?hash=${encodeURIComponent(part.hash)}`
      return { status: 301, headers: { ...jsonHeaders(), location }, body: { type: 'empty' } }
    }
    const caching = isPinned ? { 'cache-control': 'public, max-age=31536000, immutable' } : {}
    return {
      status: 200,
      headers: { ...jsonHeaders(), ...caching, etag: `"${part.hash}"`, vary: 'Accept' },
      body: { type: 'bytes', bytes: part.json },
    }
  }

  private async current(): Promise<OpenApiCatalog> {
    const { openApiCatalog } = await import('../openapi/index.js')
    if (!this.catalog || this.madeFor !== this.registry.generation) {
      this.madeFor = this.registry.generation
      this.catalog = openApiCatalog(this.registry.all.map(describe))
    }
    return this.catalog
  }
}

function describe(kind: KindDefinition): OpenApiKind {
  const { group, version, apiVersion, plural, namespaced } = kind
  const base = { group, version, apiVersion, kind: kind.kind, plural, namespaced }
  if (kind.schema) return { ...base, schema: kind.schema.raw as JsonSchema }
  const type = fieldTable.forKind(apiVersion, kind.kind)
  return type ? { ...base, typeName: type.name } : base
}

export { type OpenApiCatalog, type OpenApiPart, openApiCatalog } from './open-api-catalog.js'
export { openApiDocument } from './open-api-document.js'
export type { OpenApiDocument, OpenApiKind } from './open-api-kind.js'

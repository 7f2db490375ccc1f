export { type OpenApiCatalog, openApiCatalog } from './open-api-catalog.js'
export { openApiDocument } from './open-api-document.js'
export type { OpenApiKind } from './open-api-kind.js'

import { type FieldTable, fieldTable } from '@corral/resources'
import { type OpenApiDocument, type OpenApiKind, type Schema, schemaName } from './open-api-kind.js'
import { addTableSchemas, refTo } from './table-schemas.js'

const OBJECT_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'

/**
 * The document of one group-version, no larger than kubectl needs: schemas for `explain`, and per kind one patch
 * operation with the `fieldValidation` parameter, by which kubectl learns that the server validates. There is no
 * request body, so that kubectl merges built-in kinds by its own types.
 */
export function openApiDocument(
  apiVersion: string,
  kinds: Iterable<OpenApiKind>,
  table: FieldTable = fieldTable,
): OpenApiDocument {
  const schemas: Record<string, Schema> = {}
  const paths: Record<string, unknown> = {}
  for (const kind of kinds) {
    if (kind.apiVersion !== apiVersion) continue
    addKindSchema(schemas, kind, table)
    paths[itemPath(kind)] = { patch: patchOperation(kind) }
  }
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: 'unversioned' },
    paths,
    components: { schemas },
  }
}

function addKindSchema(schemas: Record<string, Schema>, kind: OpenApiKind, table: FieldTable): void {
  const name = schemaName(kind)
  const { group, version, kind: kindName } = kind
  if (kind.typeName) addTableSchemas(schemas, kind.typeName, table)
  else {
    addTableSchemas(schemas, OBJECT_META, table)
    schemas[name] = customSchema(kind)
  }
  // Some kinds are of a group the table does not have: they still have a name to be found under.
  const schema = schemas[name] ?? { type: 'object' }
  schemas[name] = { ...schema, 'x-kubernetes-group-version-kind': [{ group, version, kind: kindName }] }
}

function customSchema({ schema = { type: 'object' } }: OpenApiKind): Schema {
  const properties = {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    ...schema.properties,
    metadata: refTo(OBJECT_META),
  }
  return { ...schema, properties }
}

function itemPath({ apiVersion, plural, namespaced }: OpenApiKind): string {
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  return namespaced ? `${root}/namespaces/{namespace}/${plural}/{name}` : `${root}/${plural}/{name}`
}

function patchOperation({ group, version, kind, namespaced }: OpenApiKind): unknown {
  const inPath = (name: string): unknown => ({ name, in: 'path', required: true, schema: { type: 'string' } })
  return {
    operationId: `patch${version}${namespaced ? 'Namespaced' : ''}${kind}`,
    parameters: [
      inPath('name'),
      ...(namespaced ? [inPath('namespace')] : []),
      { name: 'fieldValidation', in: 'query', schema: { type: 'string' } },
    ],
    responses: { 200: { description: 'OK' } },
    'x-kubernetes-action': 'patch',
    // A single object here, and a list on schemas: kubectl tells the two apart.
    'x-kubernetes-group-version-kind': { group, version, kind },
  }
}

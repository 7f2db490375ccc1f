import type { CustomResourceDefinition, KubeObject, ObjectMeta } from '@corral/resources'
import { type CelRules, compileCelRules, hasCelRules, withRuleErrors } from '../cel/index.js'
import { forbidden } from '../errors/api-error.js'
import type { JsonObject } from '../objects/plain-json.js'
import {
  describeKind,
  type KindDefinition,
  type KindSchema,
  type ScalePaths,
  type SubresourceDefinition,
} from '../registry/kind-definition.js'
import { fieldReader } from '../registry/selectable-fields.js'
import { compileSchema, type JsonSchema } from '../schema/index.js'
import { Stamp } from '../store/stamp.js'
import { type Converter, converterFor } from './conversion.js'
import { prepareEngines } from './prepare-definition.js'
import { scaleErrors } from './scale-errors.js'

type Version = NonNullable<NonNullable<CustomResourceDefinition['spec']>['versions']>[number]

/** One definition per served version of a CRD. Schemas are compiled when the first object passes through them. */
export function customKinds(crd: CustomResourceDefinition): KindDefinition[] {
  const versions = crd.spec?.versions ?? []
  const storage = versions.find((version) => version.storage)
  if (!storage) return []
  const converter = converterFor(crd)
  return versions
    .filter((version) => version.served)
    .map((version) => customKind(crd, version, storage.name, converter))
}

function customKind(
  crd: CustomResourceDefinition,
  version: Version,
  storageVersion: string,
  converter: Converter,
): KindDefinition {
  const { group, names, scope } = crd.spec!
  const apiVersion = `${group}/${version.name}`
  const storageApiVersion = `${group}/${storageVersion}`
  const scale = scalePaths(version)
  const schema = lazySchema((version.schema?.openAPIV3Schema ?? { type: 'object' }) as JsonSchema, scale)
  return describeKind(
    {
      group,
      version: version.name,
      apiVersion,
      kind: names.kind,
      plural: names.plural,
      namespaced: scope === 'Namespaced',
    },
    {
      singular: names.singular ?? names.kind.toLowerCase(),
      listKind: names.listKind ?? `${names.kind}List`,
      shortNames: names.shortNames ?? [],
      categories: names.categories ?? [],
      isCustom: true,
      hasStatus: version.subresources?.status !== undefined,
      generation: 'content',
      needsVersionOnUpdate: true,
      schema,
      printerColumns: (version.additionalPrinterColumns ?? []) as NonNullable<KindDefinition['printerColumns']>,
      selectable: Object.fromEntries(
        (version.selectableFields ?? []).map(({ jsonPath }) => [jsonPath.replace(/^\./, ''), fieldReader(jsonPath)]),
      ),
      ...(scale ? { subresources: [SCALE_ROW], scale } : {}),
      ...(version.deprecated
        ? {
            warning: version.deprecationWarning ?? `${apiVersion} ${names.kind} is deprecated`,
            warnsOnRead: true,
          }
        : {}),
      ...(crd.metadata?.deletionTimestamp
        ? {
            prepareCreate: ({ metadata }) => {
              const target = { group, plural: names.plural, kind: names.kind }
              throw forbidden(target, (metadata as ObjectMeta).name ?? '', TERMINATING_TEXT)
            },
          }
        : {}),
      isOwnView: (stored) => stored.apiVersion === apiVersion && completedBy.get(stored) === schema,
      ...(converter.load ? { loadConversions: (stored) => converter.load!(stored, apiVersion) } : {}),
      toVersion: (stored) => readAs(stored, apiVersion, converter, schema),
      fromVersion: (object) => {
        const stored = object.apiVersion === storageApiVersion ? object : converter.convert(object, storageApiVersion)
        if (stored === object && Object.isExtensible(object)) completedBy.set(object, schema)
        return stored
      },
    },
  )
}

const TERMINATING_TEXT = 'create not allowed while custom resource definition is terminating'

function scalePaths({ subresources }: Version): ScalePaths | undefined {
  if (!subresources?.scale) return undefined
  const { specReplicasPath, statusReplicasPath, labelSelectorPath } = subresources.scale
  return {
    specReplicas: specReplicasPath.replace(/^\./, ''),
    statusReplicas: statusReplicasPath.replace(/^\./, ''),
    ...(labelSelectorPath ? { selector: labelSelectorPath.replace(/^\./, '') } : {}),
  }
}

const SCALE_ROW: SubresourceDefinition = {
  name: 'scale',
  group: 'autoscaling',
  version: 'v1',
  kind: 'Scale',
  verbs: ['get', 'patch', 'update'],
}

/** The schema whose defaults an object is known to have, because it was written through it. */
const completedBy = new Stamp<KindSchema>()

function readAs(stored: KubeObject, apiVersion: string, converter: Converter, schema: KindSchema): KubeObject {
  const converted = stored.apiVersion === apiVersion ? stored : converter.convert(stored, apiVersion)
  return schema.applyDefaults(converted as JsonObject) as KubeObject
}

const ROOT_FIELDS = ['apiVersion', 'kind', 'metadata'] as const

function lazySchema(schema: JsonSchema, scale: ScalePaths | undefined): KindSchema {
  let compiled: ReturnType<typeof compileSchema> | undefined
  let rules: CelRules | undefined
  let isPrepared = false
  const get = (): ReturnType<typeof compileSchema> => (compiled ??= compileSchema(schema))
  return {
    raw: schema as JsonObject,
    prepare() {
      if (isPrepared) return undefined
      return prepareEngines(schema).then(() => {
        isPrepared = true
      })
    },
    prune(object) {
      const { value, unknownPaths } = get().prune(object)
      if (value === object) return { value, unknown: unknownPaths }
      // The schema describes what is specific; identity and metadata belong to every object.
      const kept: JsonObject = { ...value }
      for (const field of ROOT_FIELDS) if (object[field] !== undefined) kept[field] = object[field]
      return { value: kept, unknown: unknownPaths.filter((path) => !isRootPath(path)) }
    },
    applyDefaults: (object) => get().applyDefaults(object),
    validate(object, old) {
      const found = get().validate(object, old === undefined ? {} : { oldValue: old })
      const errors = scale ? [...found, ...scaleErrors(object, scale)] : found
      if (!hasCelRules(schema)) return errors
      rules ??= compileCelRules(schema)
      return withRuleErrors(errors, rules, object, old)
    },
  }
}

const isRootPath = (path: string): boolean =>
  ROOT_FIELDS.some((field) => path === field || path.startsWith(`${field}.`) || path.startsWith(`${field}[`))

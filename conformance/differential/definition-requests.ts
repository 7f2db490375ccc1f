import { type Asked, create, of } from './asked.js'

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const text = { type: 'string' }
const anObject = { type: 'object' }
const names = { plural: 'things', kind: 'Thing' }

const define = (spec: object, schema: object = anObject, version: object = {}): Asked =>
  create(definitions, {
    ...of('apiextensions.k8s.io/v1', 'CustomResourceDefinition'),
    metadata: { name: 'things.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names,
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema }, ...version }],
      ...spec,
    },
  })
const field = (schema: object): Asked =>
  define({}, { type: 'object', properties: { spec: { type: 'object', properties: { a: schema } } } })

/** Definitions with something wrong about them as a whole. */
const wholes: readonly Asked[] = [
  ...[
    { group: '' },
    { group: 'Bad Group' },
    { group: 'other.com' },
    { names: { plural: 'things' } },
    { names: { plural: 'things', kind: 'bad kind' } },
    { names: { ...names, singular: 'X' } },
    { names: { ...names, shortNames: ['BAD'] } },
    { names: { ...names, categories: ['Bad'] } },
    { scope: undefined },
  ].map((spec) => define(spec)),
  ...[
    {},
    { conversionReviewVersions: ['v1'], clientConfig: {} },
    { conversionReviewVersions: ['v1'], clientConfig: { url: 'http://127.0.0.1:1/x' } },
    { conversionReviewVersions: ['v9'], clientConfig: { url: 'https://127.0.0.1:1/x' } },
    { clientConfig: { url: 'https://127.0.0.1:1/x' } },
  ].map((webhook) => define({ conversion: { strategy: 'Webhook', webhook } })),
  define({ conversion: { strategy: 'Other' } }),
]

const scale = { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' }

/** Versions whose parts point nowhere. */
const versions: readonly Asked[] = [
  ...[{}, { ...scale, specReplicasPath: 'spec.replicas' }, { ...scale, labelSelectorPath: '.x' }].map((part) =>
    define({}, anObject, { subresources: { scale: part } }),
  ),
  define({}, anObject, { subresources: { scale: { specReplicasPath: '.status.x', statusReplicasPath: '.spec.x' } } }),
  ...[
    { name: 'A', type: 'nope', jsonPath: '.spec.a' },
    { name: 'A', type: 'string' },
    { type: 'string', jsonPath: '.a' },
    { name: 'A', type: 'string', jsonPath: '.a', format: 'nope' },
  ].map((column) => define({}, anObject, { additionalPrinterColumns: [column] })),
  define({}, anObject, { selectableFields: [{ jsonPath: '.spec.a' }] }),
]

const keyed = (part: object): object => ({ type: 'array', 'x-kubernetes-list-type': 'map', ...part })
const item = { type: 'object', required: ['k'], properties: { k: text } }

/** Schemas that are not structural, or say something that cannot be. */
const schemas: readonly Asked[] = [
  ...[
    {},
    { $ref: '#/x' },
    { type: 'array', items: [text] },
    { type: 'array', items: text, uniqueItems: true },
    { type: 'object', patternProperties: { a: text } },
    { type: 'object', definitions: { a: text } },
    { id: 'x', ...text },
    { 'x-kubernetes-preserve-unknown-fields': false, type: 'object' },
    { anyOf: [{ type: 'integer' }, { type: 'string' }] },
    { type: 'integer', not: { default: 5 } },
    { type: 'object', allOf: [{ description: 'x' }] },
    { ...text, default: 5 },
    { ...text, maxLength: 1, default: 'toolong' },
    { type: 'object', required: ['x'], default: {} },
    { type: 'object', 'x-kubernetes-map-type': 'nope' },
    { ...text, 'x-kubernetes-map-type': 'atomic' },
    { type: 'array', items: text, 'x-kubernetes-list-map-keys': ['a'] },
    keyed({ items: item, 'x-kubernetes-list-map-keys': ['k', 'k'] }),
    keyed({ items: item, 'x-kubernetes-list-map-keys': ['z'] }),
    keyed({ items: { type: 'object', properties: { k: text } }, 'x-kubernetes-list-map-keys': ['k'] }),
    { type: 'object', 'x-kubernetes-embedded-resource': true },
  ].map(field),
  define({}, text),
  define({}, { type: 'object', nullable: true }),
  define({}, { type: 'object', default: {} }),
  define({}, { type: 'object', properties: { apiVersion: { type: 'integer' } } }),
  define({}, { type: 'object', properties: { metadata: text } }),
]

/** Rules apart from what the compiler says about them, which it says in words of its own. */
const rules: readonly Asked[] = [
  ...[
    { rule: 'true', message: 'a\nb' },
    { rule: 'true', messageExpression: '5' },
    { rule: 'true', optionalOldSelf: true },
    { rule: 'true', fieldPath: '.a' },
    { rule: '' },
  ].map((rule) => field({ ...text, 'x-kubernetes-validations': [rule] })),
  ...['.z', 'b'].map((fieldPath) =>
    field({ type: 'object', properties: { b: text }, 'x-kubernetes-validations': [{ rule: 'true', fieldPath }] }),
  ),
]

export const definitionRequests: readonly Asked[] = [...wholes, ...versions, ...schemas, ...rules]

import { expect, it } from 'vitest'
import { checkSelectableFields } from './check-selectable-fields.js'
import type { FieldError } from './field-error.js'

const text = { type: 'string' }
const schema = {
  openAPIV3Schema: {
    type: 'object',
    properties: {
      metadata: { type: 'object', properties: { name: text } },
      spec: {
        type: 'object',
        properties: {
          color: text,
          count: { type: 'integer' },
          isOn: { type: 'boolean' },
          when: { ...text, format: 'date-time', nullable: true },
          share: { type: 'number' },
          either: { 'x-kubernetes-int-or-string': true },
          list: { type: 'array', items: text },
          map: { type: 'object', additionalProperties: text },
          any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
          deep: { type: 'object', properties: { 'foo-bar': text } },
        },
      },
    },
  },
}

function problemsOf(...paths: (string | undefined)[]): string[] {
  const errors: FieldError[] = []
  const selectableFields = paths.map((jsonPath) => (jsonPath === undefined ? {} : { jsonPath }))
  checkSelectableFields({ schema, selectableFields }, 'spec', errors)
  return errors.map(({ field, message }) => `${field}: ${message}`)
}

it.each(['.spec.color', '.spec.count', '.spec.isOn', '.spec.when', '.spec.map.key', '.spec.deep.foo-bar'])(
  '%s can be selected by',
  (path) => {
    expect(problemsOf(path)).toEqual([])
  },
)

it.each<[path: string | undefined, problem: string]>([
  [undefined, 'Required value'],
  ['', 'Required value'],
  ['.spec', 'must point to a field of type string, boolean or integer'],
  ['.spec.share', 'must point to a field of type string, boolean or integer'],
  ['.spec.either', 'must point to a field of type string, boolean or integer'],
  ['.spec.list', 'must point to a field of type string, boolean or integer'],
  ['.spec.list[0]', 'is an invalid path: array notation is not allowed'],
  [".spec['color']", 'is an invalid path: array notation is not allowed'],
  ['.spec.nope', 'is an invalid path: does not refer to a valid field'],
  ['.spec.any.thing', 'is an invalid path: does not refer to a valid field'],
  ['.spec.color.more', 'is an invalid path: does not refer to a valid field'],
  ['.spec.toString', 'is an invalid path: does not refer to a valid field'],
  ['..spec.color', 'is an invalid path: does not refer to a valid field'],
  ['spec.color', 'is an invalid path: expected [ or . but got: spec'],
  ['$.spec.color', 'is an invalid path: expected [ or . but got: $'],
  ['.', 'is an invalid path: unexpected end of JSON path'],
  ['.spec.', 'is an invalid path: unexpected end of JSON path'],
  ['.metadata.name', 'must not point to fields in metadata'],
])('%s is refused: %s', (path, problem) => {
  expect(problemsOf(path)).toEqual([expect.stringContaining(problem)])
  expect(problemsOf(path)[0]).toMatch(/^spec\.selectableFields\[0\]\.jsonPath: /)
})

it('a path counts once, and there are at most eight', () => {
  expect(problemsOf('.spec.color', '.spec.color')).toEqual([
    'spec.selectableFields[1].jsonPath: Duplicate value: ".spec.color"',
  ])
  const nine = Array.from({ length: 9 }, (_, i) => `.spec.map.k${i}`)
  expect(problemsOf(...nine)).toEqual(['spec.selectableFields: Too many: 9: must have at most 8 items'])
})

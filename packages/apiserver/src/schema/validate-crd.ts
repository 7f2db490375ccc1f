import { dns1035LabelError, dns1123SubdomainError } from '@corral/resources'
import { type FieldError, forbidden, invalidValue, notSupported, requiredValue } from './field-error.js'
import type { JsonSchema } from './json-schema.js'
import { isRecord, type JsonRecord } from './json-value.js'
import { checkStructural } from './structural.js'
import { checkConversion, checkVersionParts } from './validate-crd-parts.js'

/**
 * Everything wrong with a CustomResourceDefinition as a whole: names, scope, versions, schemas, conversion. CEL rules
 * are compiled by `compileCelRules`. Schemas with patterns beyond the plain ones need `prepareSchema` first.
 */
export function validateCrd(crd: JsonRecord): FieldError[] {
  const spec = isRecord(crd.spec) ? crd.spec : {}
  const metadata = isRecord(crd.metadata) ? crd.metadata : {}
  const errors: FieldError[] = []
  checkNames(metadata, spec, errors)
  checkApproval(metadata, spec, errors)
  checkVersions(spec, errors)
  if (isRecord(spec.conversion)) checkConversion(spec.conversion, errors)
  return errors
}

function checkNames(metadata: JsonRecord, spec: JsonRecord, errors: FieldError[]): void {
  const names = isRecord(spec.names) ? spec.names : {}
  const group = typeof spec.group === 'string' ? spec.group : ''
  const plural = typeof names.plural === 'string' ? names.plural : ''
  if (metadata.name !== undefined && metadata.name !== `${plural}.${group}`) {
    errors.push(invalidValue('metadata.name', metadata.name, 'must be spec.names.plural+"."+spec.group'))
  }
  const groupProblem = dns1123SubdomainError(group)
  if (!group) errors.push(requiredValue('spec.group'))
  else if (groupProblem) errors.push(invalidValue('spec.group', group, groupProblem))
  else if (!group.includes('.'))
    errors.push(invalidValue('spec.group', group, 'should be a domain with at least one dot'))
  if (spec.scope === undefined || spec.scope === '') errors.push(requiredValue('spec.scope'))
  else if (spec.scope !== 'Cluster' && spec.scope !== 'Namespaced') {
    errors.push(notSupported('spec.scope', spec.scope, ['Cluster', 'Namespaced']))
  }
  for (const field of ['plural', 'singular', 'kind', 'listKind']) checkName(names[field], field, errors)
  if (names.kind && names.listKind === names.kind) {
    errors.push(invalidValue('spec.names.listKind', names.listKind, 'kind and listKind may not be the same'))
  }
  for (const [field, list] of [
    ['shortNames', names.shortNames],
    ['categories', names.categories],
  ] as const) {
    if (!Array.isArray(list)) continue
    for (const [i, name] of list.entries()) {
      const problem = dns1035LabelError(String(name))
      if (problem) errors.push(invalidValue(`spec.names.${field}[${i}]`, name, problem))
    }
  }
}

function checkName(name: unknown, field: string, errors: FieldError[]): void {
  if (typeof name !== 'string' || name === '') return void errors.push(requiredValue(`spec.names.${field}`))
  const isKind = field === 'kind' || field === 'listKind'
  const problem = dns1035LabelError(isKind ? name.toLowerCase() : name)
  const why = isKind ? `may have mixed case, but should otherwise match: ${problem}` : problem
  if (problem) errors.push(invalidValue(`spec.names.${field}`, name, why ?? problem))
}

const APPROVAL = 'api-approved.kubernetes.io'

/** Groups of the Kubernetes community are for definitions it has looked at. */
function checkApproval(metadata: JsonRecord, { group }: JsonRecord, errors: FieldError[]): void {
  if (!/(^|\.)(k8s|kubernetes)\.io$/.test(String(group))) return
  if (isRecord(metadata.annotations) && metadata.annotations[APPROVAL]) return
  const why = `protected groups must have approval annotation "${APPROVAL}", see https://github.com/kubernetes/enhancements/pull/1111`
  errors.push(requiredValue(`metadata.annotations[${APPROVAL}]`, why))
}

function checkVersions(spec: JsonRecord, errors: FieldError[]): void {
  const versions = Array.isArray(spec.versions) ? spec.versions.filter(isRecord) : []
  const seen = new Set<unknown>()
  let storage = 0
  for (const [i, version] of versions.entries()) {
    const path = `spec.versions[${i}]`
    if (version.storage === true) storage++
    const problem = dns1035LabelError(String(version.name ?? ''))
    if (problem) errors.push(invalidValue(`${path}.name`, version.name ?? '', problem))
    if (seen.has(version.name))
      errors.push(invalidValue('spec.versions', version.name, 'must contain unique version names'))
    seen.add(version.name)
    const isOnly = versions.length === 1
    checkSchema(version, i, isOnly, errors)
    checkVersionParts(version, isOnly ? 'spec' : path, errors)
    if (version.deprecationWarning !== undefined && version.deprecated !== true) {
      errors.push(
        invalidValue(
          `${path}.deprecationWarning`,
          version.deprecationWarning,
          'can only be set for deprecated versions',
        ),
      )
    }
  }
  if (storage !== 1) {
    errors.push(
      invalidValue('spec.versions', printVersions(versions), 'must have exactly one version marked as storage version'),
      invalidValue('status.storedVersions', null, 'must have at least one stored version'),
    )
  }
  if (spec.preserveUnknownFields === true) {
    errors.push(
      invalidValue(
        'spec.preserveUnknownFields',
        true,
        'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead',
      ),
    )
  }
}

function printVersions(versions: readonly JsonRecord[]): unknown {
  return versions.map(({ name, served, storage }) => ({ name, served, storage }))
}

/** A definition with one version is judged in its internal form, which has the schema outside the version. */
export const schemaPath = (index: number, isOnly: boolean): string =>
  isOnly ? 'spec.validation.openAPIV3Schema' : `spec.versions[${index}].schema.openAPIV3Schema`

function checkSchema(version: JsonRecord, index: number, isOnly: boolean, errors: FieldError[]): void {
  const holder = isRecord(version.schema) ? version.schema : undefined
  const schema = holder && isRecord(holder.openAPIV3Schema) ? holder.openAPIV3Schema : undefined
  if (!schema) {
    errors.push(requiredValue(schemaPath(index, false)))
    return
  }
  const at = schemaPath(index, isOnly)
  const metadata = isRecord(schema.properties) ? schema.properties.metadata : undefined
  const fields = isRecord(metadata) && isRecord(metadata.properties) ? Object.keys(metadata.properties) : []
  if (fields.some((field) => field !== 'name' && field !== 'generateName')) {
    const why = 'must not specify anything other than name and generateName, but metadata is implicitly specified'
    errors.push(forbidden(`${at}.properties[metadata]`, why))
  }
  // The shape of a schema is what checkStructural is about to judge; unknown keywords are ignored.
  errors.push(...checkStructural(schema as JsonSchema, at))
}

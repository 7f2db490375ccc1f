import { type FieldError, forbidden, invalidValue, notSupported, requiredValue } from './field-error.js'
import type { JsonSchema } from './json-schema.js'
import { isRecord, type JsonRecord } from './json-value.js'
import { checkStructural } from './structural.js'

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const DNS_1035 = /^[a-z]([-a-z0-9]*[a-z0-9])?$/
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const NAME_RULE =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"

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
  checkConversion(spec, errors)
  return errors
}

function checkNames(metadata: JsonRecord, spec: JsonRecord, errors: FieldError[]): void {
  const names = isRecord(spec.names) ? spec.names : {}
  const group = typeof spec.group === 'string' ? spec.group : ''
  const plural = typeof names.plural === 'string' ? names.plural : ''
  if (!group) errors.push(requiredValue('spec.group'))
  else if (!SUBDOMAIN.test(group))
    errors.push(
      invalidValue(
        'spec.group',
        group,
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
      ),
    )
  else if (!group.includes('.'))
    errors.push(invalidValue('spec.group', group, 'should be a domain with at least one dot'))
  if (metadata.name !== undefined && metadata.name !== `${plural}.${group}`) {
    errors.push(invalidValue('metadata.name', metadata.name, 'must be spec.names.plural+"."+spec.group'))
  }
  if (spec.scope === undefined || spec.scope === '') errors.push(requiredValue('spec.scope'))
  else if (spec.scope !== 'Cluster' && spec.scope !== 'Namespaced') {
    errors.push(notSupported('spec.scope', spec.scope, ['Cluster', 'Namespaced']))
  }
  if (!plural) errors.push(requiredValue('spec.names.plural'))
  else if (!DNS_1035.test(plural)) errors.push(invalidValue('spec.names.plural', plural, NAME_RULE))
  const kind = typeof names.kind === 'string' ? names.kind : ''
  if (!kind) errors.push(requiredValue('spec.names.kind'))
  else if (!DNS_1035.test(kind.toLowerCase())) {
    errors.push(invalidValue('spec.names.kind', kind, `may have mixed case, but should otherwise match: ${NAME_RULE}`))
  }
  if (typeof names.listKind === 'string' && names.listKind === kind && kind) {
    errors.push(invalidValue('spec.names.listKind', names.listKind, 'kind and listKind may not be the same'))
  }
  for (const [field, list] of [
    ['shortNames', names.shortNames],
    ['categories', names.categories],
  ] as const) {
    if (!Array.isArray(list)) continue
    for (const [i, name] of list.entries()) {
      if (typeof name !== 'string' || !DNS_1035.test(name)) {
        errors.push(invalidValue(`spec.names.${field}[${i}]`, name, NAME_RULE))
      }
    }
  }
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
    if (typeof version.name !== 'string' || !DNS_LABEL.test(version.name)) {
      errors.push(invalidValue(`${path}.name`, version.name ?? '', NAME_RULE))
    }
    if (seen.has(version.name))
      errors.push(invalidValue('spec.versions', version.name, 'must contain unique version names'))
    seen.add(version.name)
    checkSchema(version, path, versions.length === 1, errors)
    checkColumns(version, path, errors)
    checkSubresources(version, path, errors)
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

function checkSchema(version: JsonRecord, path: string, isOnly: boolean, errors: FieldError[]): void {
  const holder = isRecord(version.schema) ? version.schema : undefined
  const schema = holder && isRecord(holder.openAPIV3Schema) ? holder.openAPIV3Schema : undefined
  if (!schema) {
    errors.push(requiredValue(`${path}.schema.openAPIV3Schema`))
    return
  }
  // A definition with one version is judged in its internal form, which has the schema outside the version.
  const at = isOnly ? 'spec.validation.openAPIV3Schema' : `${path}.schema.openAPIV3Schema`
  const metadata = isRecord(schema.properties) ? schema.properties.metadata : undefined
  const fields = isRecord(metadata) && isRecord(metadata.properties) ? Object.keys(metadata.properties) : []
  if (fields.some((field) => field !== 'name' && field !== 'generateName')) {
    const why = 'must not specify anything other than name and generateName, but metadata is implicitly specified'
    errors.push(forbidden(`${at}.properties[metadata]`, why))
  }
  // The shape of a schema is what checkStructural is about to judge; unknown keywords are ignored.
  errors.push(...checkStructural(schema as JsonSchema, at))
}

function checkColumns(version: JsonRecord, path: string, errors: FieldError[]): void {
  const columns = Array.isArray(version.additionalPrinterColumns) ? version.additionalPrinterColumns : []
  for (const [i, column] of columns.entries()) {
    const at = `${path}.additionalPrinterColumns[${i}]`
    if (!isRecord(column)) continue
    if (!column.name) errors.push(requiredValue(`${at}.name`))
    if (!column.jsonPath) errors.push(requiredValue(`${at}.jsonPath`))
    else if (!String(column.jsonPath).startsWith('.'))
      errors.push(invalidValue(`${at}.jsonPath`, column.jsonPath, 'must be a simple json path starting with .'))
    const types = ['boolean', 'date', 'integer', 'number', 'string']
    if (!column.type) errors.push(requiredValue(`${at}.type`, `must be one of ${types.join(',')}`))
    else if (!types.includes(String(column.type))) {
      errors.push(invalidValue(`${at}.type`, column.type, `must be one of ${types.join(',')}`))
    }
  }
}

function checkSubresources(version: JsonRecord, path: string, errors: FieldError[]): void {
  const subresources = isRecord(version.subresources) ? version.subresources : {}
  if (!isRecord(subresources.scale)) return
  const at = `${path}.subresources.scale`
  const { specReplicasPath, statusReplicasPath } = subresources.scale
  if (!specReplicasPath) errors.push(requiredValue(`${at}.specReplicasPath`))
  else if (!String(specReplicasPath).startsWith('.spec.')) {
    errors.push(invalidValue(`${at}.specReplicasPath`, specReplicasPath, 'should be a json path under .spec'))
  }
  if (!statusReplicasPath) errors.push(requiredValue(`${at}.statusReplicasPath`))
  else if (!String(statusReplicasPath).startsWith('.status.')) {
    errors.push(invalidValue(`${at}.statusReplicasPath`, statusReplicasPath, 'should be a json path under .status'))
  }
}

function checkConversion(spec: JsonRecord, errors: FieldError[]): void {
  if (!isRecord(spec.conversion)) return
  const { strategy, webhook } = spec.conversion
  if (strategy !== 'None' && strategy !== 'Webhook') {
    errors.push(notSupported('spec.conversion.strategy', strategy ?? '', ['None', 'Webhook']))
  }
  if (strategy === 'None' && webhook !== undefined) {
    errors.push(forbidden('spec.conversion.webhook', 'should not be set when strategy is not set to Webhook'))
  }
  if (strategy === 'Webhook' && (!isRecord(webhook) || !isRecord(webhook.clientConfig))) {
    errors.push(requiredValue('spec.conversion.webhook.clientConfig', 'required when strategy is set to Webhook'))
  }
}

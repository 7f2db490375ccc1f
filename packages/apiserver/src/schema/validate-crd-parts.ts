import { checkSelectableFields } from './check-selectable-fields.js'
import { type FieldError, forbidden, invalidValue, notSupported, requiredValue } from './field-error.js'
import type { JsonSchema } from './json-schema.js'
import { isRecord, type JsonRecord } from './json-value.js'

/** What is wrong with a version of a definition apart from its name and schema; `path` is where its parts are named. */
export function checkVersionParts(version: JsonRecord, path: string, errors: FieldError[]): void {
  checkColumns(version, path, errors)
  checkScale(version, path, errors)
  checkSelectableFields(version, path, errors)
}

const COLUMN_TYPES = ['boolean', 'date', 'integer', 'number', 'string']
const COLUMN_FORMATS = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password']

function checkColumns(version: JsonRecord, path: string, errors: FieldError[]): void {
  const columns = Array.isArray(version.additionalPrinterColumns) ? version.additionalPrinterColumns : []
  for (const [i, column] of columns.entries()) {
    const at = `${path}.additionalPrinterColumns[${i}]`
    if (!isRecord(column)) continue
    const { name, type, format, jsonPath } = column
    if (!name) errors.push(requiredValue(`${at}.name`))
    if (!type) errors.push(requiredValue(`${at}.type`, `must be one of ${COLUMN_TYPES.join(',')}`))
    else if (!COLUMN_TYPES.includes(String(type)))
      errors.push(invalidValue(`${at}.type`, type, `must be one of ${COLUMN_TYPES.join(',')}`))
    if (format && !COLUMN_FORMATS.includes(String(format)))
      errors.push(invalidValue(`${at}.format`, format, `must be one of ${COLUMN_FORMATS.join(',')}`))
    if (!jsonPath) errors.push(requiredValue(`${at}.JSONPath`))
    else if (!isSimplePath(jsonPath)) errors.push(invalidValue(`${at}.JSONPath`, jsonPath, SIMPLE_PATH_TEXT))
  }
}

const SIMPLE_PATH_TEXT = 'must be a simple json path starting with .'
const isSimplePath = (path: unknown): boolean => String(path).startsWith('.')

function checkScale(version: JsonRecord, path: string, errors: FieldError[]): void {
  const scale = isRecord(version.subresources) ? version.subresources.scale : undefined
  if (!isRecord(scale)) return
  const check = (field: string, roots: readonly string[], isRequired: boolean): void => {
    const value = scale[field]
    const at = `${path}.subresources.scale.${field}`
    if (!value && isRequired) errors.push(requiredValue(at))
    else if (value && !isSimplePath(value)) errors.push(invalidValue(at, value, SIMPLE_PATH_TEXT))
    else if (value && !roots.some((root) => String(value).startsWith(`${root}.`))) {
      const where = roots.length === 1 ? roots[0] : `either ${roots.join(' or ')}`
      errors.push(invalidValue(at, value, `should be a json path under ${where}`))
    }
  }
  check('specReplicasPath', ['.spec'], true)
  check('statusReplicasPath', ['.status'], true)
  check('labelSelectorPath', ['.spec', '.status'], false)
}

/** The schema a simple path leads to; undefined where it leads nowhere. */
export function fieldAt(schema: JsonSchema, path: string): JsonSchema | undefined {
  if (!path.startsWith('.')) return undefined
  let at: JsonSchema | undefined = schema
  for (const name of path.slice(1).split('.')) at = at?.properties?.[name]
  return at
}

const REVIEW_VERSIONS = ['v1', 'v1beta1']

/** What is wrong with the way objects of a definition are converted. */
export function checkConversion({ strategy, webhook }: JsonRecord, errors: FieldError[]): void {
  const at = 'spec.conversion'
  const { clientConfig, conversionReviewVersions } = isRecord(webhook) ? webhook : {}
  const versions = Array.isArray(conversionReviewVersions) ? conversionReviewVersions : []
  if (strategy !== 'None' && strategy !== 'Webhook')
    errors.push(notSupported(`${at}.strategy`, strategy ?? '', ['None', 'Webhook']))
  if (strategy !== 'Webhook') {
    const why = 'should not be set when strategy is not set to Webhook'
    if (clientConfig !== undefined) errors.push(forbidden(`${at}.webhookClientConfig`, why))
    if (versions.length > 0) errors.push(forbidden(`${at}.conversionReviewVersions`, why))
    return
  }
  if (!isRecord(clientConfig))
    errors.push(requiredValue(`${at}.webhookClientConfig`, 'required when strategy is set to Webhook'))
  else checkClientConfig(clientConfig, `${at}.webhookClientConfig`, errors)
  if (versions.length === 0) errors.push(requiredValue(`${at}.conversionReviewVersions`))
  else if (!versions.some((version) => REVIEW_VERSIONS.includes(String(version)))) {
    const why = `must include at least one of ${REVIEW_VERSIONS.join(', ')}`
    errors.push(invalidValue(`${at}.conversionReviewVersions`, versions, why))
  }
}

const URL_FORM = 'desired format: https://host[/path]'

function checkClientConfig({ url, service }: JsonRecord, at: string, errors: FieldError[]): void {
  if ((url === undefined) === (service === undefined)) {
    errors.push(requiredValue(at, 'exactly one of url or service is required'))
  } else if (url !== undefined) {
    const scheme = /^([a-z][-+.a-z0-9]*):/i.exec(String(url))?.[1] ?? ''
    if (scheme !== 'https')
      errors.push(invalidValue(`${at}.url`, scheme, `'https' is the only allowed URL scheme; ${URL_FORM}`))
  }
}

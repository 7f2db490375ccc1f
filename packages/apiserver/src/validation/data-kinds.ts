import { parseQuantity, qualifiedNameError } from '@corral/resources'
import { type FieldError, forbiddenField, invalidValue, notSupported, required } from '../errors/api-error.js'
import { equalJson, type JsonObject } from '../objects/plain-json.js'
import { nonNegative, objectOf, oneOf } from './rules.js'

const KEY_TEXT =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"

function keyErrors(field: string, value: unknown): FieldError[] {
  return Object.keys(objectOf(value)).flatMap((key) =>
    /^[-._a-zA-Z0-9]{1,253}$/.test(key) && key !== '.' && !key.startsWith('..')
      ? []
      : [invalidValue(`${field}[${key}]`, key, KEY_TEXT)],
  )
}

const MAX_DATA_BYTES = 1024 * 1024

function tooMuch(field: string, bytes: number): FieldError[] {
  if (bytes <= MAX_DATA_BYTES) return []
  return [{ reason: 'FieldValueTooLong', field, message: `Too long: may not be more than ${MAX_DATA_BYTES} bytes` }]
}

const bytesIn = (value: unknown, encoding: 'utf8' | 'base64'): number =>
  Object.values(objectOf(value)).reduce<number>((sum, each) => sum + Buffer.byteLength(String(each), encoding), 0)

/** What is wrong with the keys of a ConfigMap, and with all its values together. */
export function configMapErrors({ data, binaryData }: JsonObject): FieldError[] {
  const binary = objectOf(binaryData)
  const twice = Object.keys(objectOf(data)).filter((key) => key in binary)
  return [
    ...keyErrors('data', data),
    ...twice.map((key) => invalidValue(`data[${key}]`, key, 'duplicate of key present in binaryData')),
    ...keyErrors('binaryData', binaryData),
    ...tooMuch('[]', bytesIn(data, 'utf8') + bytesIn(binaryData, 'base64')),
  ]
}

/** What a Secret of each type must hold. */
const NEEDS: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
  'kubernetes.io/dockerconfigjson': ['.dockerconfigjson'],
  'kubernetes.io/dockercfg': ['.dockercfg'],
  'kubernetes.io/ssh-auth': ['ssh-privatekey'],
}
const ACCOUNT = 'kubernetes.io/service-account.name'

/** What is wrong with the keys of a Secret, and what its type wants and it lacks. */
export function secretErrors({ type, data, metadata }: JsonObject): FieldError[] {
  const held = objectOf(data)
  const missing = (NEEDS[String(type)] ?? []).filter((key) => !(key in held))
  if (type === 'kubernetes.io/basic-auth' && !('username' in held) && !('password' in held))
    missing.push('username', 'password')
  const isUnbound = type === 'kubernetes.io/service-account-token' && !objectOf(objectOf(metadata).annotations)[ACCOUNT]
  return [
    ...keyErrors('data', data),
    ...tooMuch('data', bytesIn(data, 'base64')),
    ...missing.map((key) => required(`data[${key}]`)),
    ...(isUnbound ? [required(`metadata.annotations[${ACCOUNT}]`)] : []),
  ]
}

const MODES = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']

/** What is wrong with the spec of a volume claim. */
export function volumeClaimErrors({ accessModes, resources }: JsonObject): FieldError[] {
  const modes = Array.isArray(accessModes) ? accessModes : []
  const storage = objectOf(objectOf(resources).requests).storage
  const quantity = storage === undefined ? undefined : parseQuantity(storage as string | number)
  const errors = modes
    .filter((mode) => !MODES.includes(mode))
    .map((mode) => notSupported('spec.accessModes', mode, MODES))
  if (modes.length === 0) errors.unshift(required('spec.accessModes', 'at least 1 access mode is required'))
  if (storage === undefined) errors.push(required('spec.resources[storage]'))
  else if (quantity && quantity.nanos <= 0)
    errors.push(invalidValue('spec.resources[storage]', String(storage), 'must be greater than zero'))
  return errors
}

const CLAIM_TEXT =
  'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims'

/** A claim keeps its spec, but for the volume and the class it is given, and once bound for its size. */
export function claimChangeErrors(next: JsonObject, old: JsonObject): FieldError[] {
  const before = objectOf(old.spec)
  const isBound = objectOf(old.status).phase === 'Bound'
  const frozen = (spec: JsonObject): JsonObject => {
    const { volumeName, storageClassName, resources, volumeAttributesClassName, ...rest } = spec
    const { requests, ...others } = objectOf(resources)
    const size = isBound ? { resources: others } : { resources: { ...others, requests }, volumeAttributesClassName }
    return {
      ...rest,
      ...size,
      ...(before.volumeName ? { volumeName } : {}),
      ...(before.storageClassName === undefined ? {} : { storageClassName }),
    }
  }
  return equalJson(frozen(objectOf(next.spec)), frozen(before)) ? [] : [forbiddenField('spec', CLAIM_TEXT)]
}

/** What is wrong with a StorageClass. */
export function storageClassErrors({ provisioner, reclaimPolicy, volumeBindingMode }: JsonObject): FieldError[] {
  const problem = provisioner ? qualifiedNameError(String(provisioner).toLowerCase()) : undefined
  return [
    ...(provisioner ? [] : [required('provisioner')]),
    ...(problem ? [invalidValue('provisioner', provisioner, problem)] : []),
    ...oneOf('reclaimPolicy', reclaimPolicy, ['Delete', 'Retain']),
    ...oneOf('volumeBindingMode', volumeBindingMode, ['Immediate', 'WaitForFirstConsumer']),
  ]
}

/** What is wrong with the spec of a Lease. */
export function leaseErrors({ leaseDurationSeconds, leaseTransitions }: JsonObject): FieldError[] {
  const field = 'spec.leaseDurationSeconds'
  const isShort = typeof leaseDurationSeconds === 'number' && leaseDurationSeconds <= 0
  return [
    ...(isShort ? [invalidValue(field, leaseDurationSeconds, 'must be greater than 0')] : []),
    ...nonNegative('spec.leaseTransitions', leaseTransitions),
  ]
}

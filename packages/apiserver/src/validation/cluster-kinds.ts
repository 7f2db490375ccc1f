import { parseQuantity } from '@corral/resources'
import { type FieldError, invalidValue, notSupported, required } from '../errors/api-error.js'
import { isJsonObject, type JsonObject } from '../objects/plain-json.js'
import { checkQualifiedName } from './qualified-name.js'
import { objectOf, objectsIn, oneOf } from './rules.js'

/** What of a volume's spec is not its source. */
const ABOUT_VOLUMES = new Set([
  'accessModes',
  'capacity',
  'claimRef',
  'mountOptions',
  'nodeAffinity',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'volumeAttributesClassName',
  'volumeMode',
])

/** What is wrong with the spec of a PersistentVolume. */
export function volumeErrors(spec: JsonObject): FieldError[] {
  const { accessModes, capacity } = spec
  const storage = objectOf(capacity).storage
  const quantity = storage === undefined ? undefined : parseQuantity(storage as string | number)
  const hasSource = Object.entries(spec).some(([name, value]) => !ABOUT_VOLUMES.has(name) && isJsonObject(value))
  return [
    ...(Array.isArray(accessModes) && accessModes.length > 0 ? [] : [required('spec.accessModes')]),
    ...(capacity === undefined ? [required('spec.capacity')] : []),
    ...(storage === undefined ? [notSupported('spec.capacity', capacity ?? null, ['storage'])] : []),
    ...(quantity && quantity.nanos <= 0
      ? [invalidValue('spec.capacity[storage]', String(storage), 'must be greater than zero')]
      : []),
    ...(hasSource ? [] : [required('spec', 'must specify a volume type')]),
  ]
}

const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

/** What is wrong with the taints of a Node. */
export function taintErrors({ taints }: JsonObject): FieldError[] {
  return objectsIn(taints).flatMap(({ key, effect }, index) => {
    const at = `metadata.taints[${index}]`
    return [
      ...checkQualifiedName(String(key ?? ''), `${at}.key`),
      ...(effect ? oneOf(`${at}.effect`, effect, EFFECTS) : [required(`${at}.effect`)]),
    ]
  })
}

/** Fills in what the author of a webhook may leave out. */
export function defaultWebhook(webhook: JsonObject, isMutating: boolean): void {
  webhook.failurePolicy ??= 'Fail'
  webhook.matchPolicy ??= 'Equivalent'
  webhook.namespaceSelector ??= {}
  webhook.objectSelector ??= {}
  webhook.timeoutSeconds ??= 10
  if (isMutating) webhook.reinvocationPolicy ??= 'Never'
  for (const rule of objectsIn(webhook.rules)) rule.scope ??= '*'
  const { service } = objectOf(webhook.clientConfig)
  if (isJsonObject(service)) service.port ??= 443
}

/** What is wrong with the webhooks of a configuration. */
export function webhookErrors({ webhooks }: JsonObject): FieldError[] {
  return objectsIn(webhooks).flatMap(({ name, sideEffects, clientConfig, admissionReviewVersions }, index) => {
    const at = `webhooks[${index}]`
    const { url, service } = objectOf(clientConfig)
    const why = 'should be a domain with at least three segments separated by dots'
    const versions = Array.isArray(admissionReviewVersions) ? admissionReviewVersions : []
    return [
      ...(String(name).split('.').length < 3 ? [invalidValue(`${at}.name`, name ?? '', why)] : []),
      ...(sideEffects ? [] : [required(`${at}.sideEffects`, 'must specify one of None, NoneOnDryRun')]),
      ...((url === undefined) === (service === undefined)
        ? [required(`${at}.clientConfig`, 'exactly one of url or service is required')]
        : []),
      ...(versions.length > 0 ? [] : [required(`${at}.admissionReviewVersions`, 'must specify one of v1, v1beta1')]),
    ]
  })
}

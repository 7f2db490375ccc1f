import { type FieldError, forbiddenField, invalidValue, required } from '../errors/api-error.js'
import { isJsonObject, type JsonObject } from '../objects/plain-json.js'
import { containerErrors, repeatedNames } from './container.js'
import { between, duplicate, ipAddress, label, labels, objectOf, objectsIn, oneOf, subdomain } from './rules.js'

/** What is wrong with a pod's spec. */
export function podSpecErrors(spec: JsonObject): FieldError[] {
  const volumes = new Set(objectsIn(spec.volumes).map(({ name }) => name))
  const errors = volumeErrors(spec)
  if (objectsIn(spec.containers).length === 0) errors.push(required('spec.containers'))
  for (const list of ['initContainers', 'containers']) {
    for (const [index, container] of objectsIn(spec[list]).entries()) {
      const path = `spec.${list}[${index}]`
      errors.push(...containerErrors(container, volumes, path))
      if (spec.hostNetwork === true) errors.push(...hostPortErrors(container, path))
    }
  }
  errors.push(
    ...repeatedNames(spec),
    ...oneOf('spec.restartPolicy', spec.restartPolicy, ['Always', 'OnFailure', 'Never']),
    ...oneOf('spec.dnsPolicy', spec.dnsPolicy, ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None']),
    ...labels('spec.nodeSelector', spec.nodeSelector),
    ...subdomain('spec.serviceAccountName', spec.serviceAccountName),
    ...subdomain('spec.nodeName', spec.nodeName),
    ...between('spec.activeDeadlineSeconds', spec.activeDeadlineSeconds, 1, 2_147_483_647),
    ...label('spec.hostname', spec.hostname),
    ...label('spec.subdomain', spec.subdomain),
    ...objectsIn(spec.tolerations).flatMap((each, index) => tolerationErrors(each, `spec.tolerations[${index}]`)),
    ...dnsErrors(spec),
    ...objectsIn(spec.hostAliases).flatMap(({ ip }, index) => ipAddress(`spec.hostAliases[${index}].ip`, ip)),
  )
  return errors
}

function hostPortErrors({ ports }: JsonObject, path: string): FieldError[] {
  return objectsIn(ports).flatMap(({ hostPort, containerPort }, index) => {
    if (!hostPort || hostPort === containerPort) return []
    const why = 'must match `containerPort` when `hostNetwork` is true'
    return [invalidValue(`${path}.ports[${index}].hostPort`, hostPort, why)]
  })
}

function dnsErrors({ dnsPolicy, dnsConfig }: JsonObject): FieldError[] {
  const { nameservers } = objectOf(dnsConfig)
  const servers = Array.isArray(nameservers) ? nameservers : []
  if (dnsPolicy === 'None' && !isJsonObject(dnsConfig))
    return [required('spec.dnsConfig', 'must provide `dnsConfig` when `dnsPolicy` is None')]
  if (dnsPolicy === 'None' && servers.length === 0)
    return [required('spec.dnsConfig.nameservers', 'must provide at least one DNS nameserver when `dnsPolicy` is None')]
  return servers.flatMap((ip, index) => ipAddress(`spec.dnsConfig.nameservers[${index}]`, ip))
}

function volumeErrors(spec: JsonObject): FieldError[] {
  const seen = new Set<unknown>()
  return objectsIn(spec.volumes).flatMap((volume, index) => {
    const path = `spec.volumes[${index}]`
    const { name } = volume
    const errors = name ? label(`${path}.name`, name) : [required(`${path}.name`)]
    if (errors.length === 0 && seen.has(name)) errors.push(duplicate(`${path}.name`, name))
    seen.add(name)
    return [...errors, ...sourceErrors(volume, path)]
  })
}

/** In the order in which Kubernetes looks for them, which decides what counts as the second. */
const SOURCES = [
  'emptyDir',
  'hostPath',
  'secret',
  'nfs',
  'persistentVolumeClaim',
  'configMap',
  'downwardAPI',
  'projected',
  'csi',
  'ephemeral',
  'image',
]
const NEEDS: Readonly<Record<string, string>> = {
  hostPath: 'path',
  secret: 'secretName',
  persistentVolumeClaim: 'claimName',
  configMap: 'name',
}

function sourceErrors(volume: JsonObject, path: string): FieldError[] {
  const [first, ...others] = SOURCES.filter((source) => isJsonObject(volume[source]))
  if (first === undefined) return []
  const errors = others.map((source) => forbiddenField(`${path}.${source}`, 'may not specify more than 1 volume type'))
  const source = objectOf(volume[first])
  const needed = NEEDS[first]
  if (needed && !source[needed]) errors.unshift(required(`${path}.${first}.${needed}`))
  const { defaultMode } = source
  if (typeof defaultMode === 'number' && (defaultMode < 0 || defaultMode > 0o777)) {
    const why = 'must be a number between 0 and 0777 (octal), both inclusive'
    errors.unshift(invalidValue(`${path}.${first}.defaultMode`, defaultMode, why))
  }
  return errors
}

const ANY_KEY_TEXT = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'

export function tolerationErrors({ key, operator, value, effect }: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = []
  if (!key && operator !== 'Exists') errors.push(invalidValue(`${path}.operator`, operator ?? '', ANY_KEY_TEXT))
  if (operator === 'Exists' && value)
    errors.push(invalidValue(`${path}.operator`, value, "value must be empty when `operator` is 'Exists'"))
  return [
    ...errors,
    ...oneOf(`${path}.operator`, operator, ['Equal', 'Exists']),
    ...oneOf(`${path}.effect`, effect, ['NoSchedule', 'PreferNoSchedule', 'NoExecute']),
  ]
}

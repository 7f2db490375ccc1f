import { compareQuantities, parseQuantity } from '@corral/resources'
import { type FieldError, forbiddenField, invalidValue, required } from '../errors/api-error.js'
import { isJsonObject, type JsonObject } from '../objects/plain-json.js'
import {
  between,
  duplicate,
  label,
  nonNegative,
  objectOf,
  objectsIn,
  oneOf,
  portName,
  portNumber,
  portOrName,
} from './rules.js'

const MAX_ID = 2_147_483_647

/** What is wrong with one container of a pod. */
export function containerErrors(container: JsonObject, volumes: ReadonlySet<unknown>, path: string): FieldError[] {
  const { name, image, securityContext } = container
  const errors: FieldError[] = name ? label(`${path}.name`, name) : [required(`${path}.name`)]
  if (!image) errors.push(required(`${path}.image`))
  errors.push(
    ...oneOf(`${path}.imagePullPolicy`, container.imagePullPolicy, ['Always', 'IfNotPresent', 'Never']),
    ...oneOf(`${path}.terminationMessagePolicy`, container.terminationMessagePolicy, ['File', 'FallbackToLogsOnError']),
    ...objectsIn(container.ports).flatMap((port, index) => portErrors(port, `${path}.ports[${index}]`)),
    ...objectsIn(container.env).flatMap((entry, index) => variableErrors(entry, `${path}.env[${index}]`)),
    ...mountErrors(container, volumes, path),
    ...resourceErrors(objectOf(container.resources), `${path}.resources`),
  )
  for (const field of ['runAsUser', 'runAsGroup'])
    errors.push(...between(`${path}.securityContext.${field}`, objectOf(securityContext)[field], 0, MAX_ID))
  for (const field of ['livenessProbe', 'readinessProbe', 'startupProbe']) {
    const probe = container[field]
    if (isJsonObject(probe)) errors.push(...probeErrors(probe, `${path}.${field}`))
  }
  const lifecycle = objectOf(container.lifecycle)
  for (const field of ['postStart', 'preStop']) {
    const handler = lifecycle[field]
    if (isJsonObject(handler))
      errors.push(...handlerErrors(handler, ['exec', 'httpGet', 'tcpSocket', 'sleep'], `${path}.lifecycle.${field}`))
  }
  return errors
}

function portErrors({ name, containerPort, hostPort, protocol }: JsonObject, path: string): FieldError[] {
  return [
    ...(typeof name === 'string' && name ? portName(`${path}.name`, name) : []),
    ...(containerPort ? portNumber(`${path}.containerPort`, containerPort) : [required(`${path}.containerPort`)]),
    ...(hostPort ? portNumber(`${path}.hostPort`, hostPort) : []),
    ...oneOf(`${path}.protocol`, protocol, ['SCTP', 'TCP', 'UDP']),
  ]
}

const VARIABLE_TEXT = "a valid environment variable name must consist only of printable ASCII characters other than '='"
const SOURCES = ['fieldRef', 'resourceFieldRef', 'configMapKeyRef', 'secretKeyRef']

function variableErrors({ name, value, valueFrom }: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = []
  if (!name) errors.push(required(`${path}.name`))
  else if (!/^[\x20-\x3c\x3e-\x7e]+$/.test(String(name))) errors.push(invalidValue(`${path}.name`, name, VARIABLE_TEXT))
  if (!isJsonObject(valueFrom)) return errors
  const given = Object.keys(valueFrom)
  if (!given.some((source) => SOURCES.includes(source))) {
    const why = 'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`'
    errors.push(invalidValue(`${path}.valueFrom`, '', why))
  } else if (value) {
    errors.push(invalidValue(`${path}.valueFrom`, '', 'may not be specified when `value` is not empty'))
  } else if (given.length > 1) {
    errors.push(invalidValue(`${path}.valueFrom`, '', 'may not have more than one field specified at a time'))
  }
  return errors
}

function mountErrors(container: JsonObject, volumes: ReadonlySet<unknown>, path: string): FieldError[] {
  const seen = new Set<unknown>()
  return objectsIn(container.volumeMounts).flatMap(({ name, mountPath }, index) => {
    const field = `${path}.volumeMounts[${index}]`
    const errors: FieldError[] = []
    if (!name) errors.push(required(`${field}.name`))
    else if (!volumes.has(name))
      errors.push({
        reason: 'FieldValueNotFound',
        field: `${field}.name`,
        message: `Not found: ${JSON.stringify(name)}`,
      })
    if (!mountPath) errors.push(required(`${field}.mountPath`))
    else if (seen.has(mountPath)) errors.push(invalidValue(`${field}.mountPath`, mountPath, 'must be unique'))
    seen.add(mountPath)
    return errors
  })
}

export function resourceErrors({ requests, limits }: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = []
  const most = objectOf(limits)
  for (const [field, amounts] of [
    ['limits', most],
    ['requests', objectOf(requests)],
  ] as const) {
    for (const [name, amount] of Object.entries(amounts)) {
      const quantity = parseQuantity(amount as string | number)
      if (quantity && quantity.nanos < 0)
        errors.push(invalidValue(`${path}.${field}[${name}]`, String(amount), 'must be greater than or equal to 0'))
      const limit = field === 'requests' && most[name] !== undefined && parseQuantity(most[name] as string | number)
      if (quantity && limit && compareQuantities(quantity, limit) > 0) {
        const why = `must be less than or equal to ${name} limit of ${String(most[name])}`
        errors.push(invalidValue(`${path}.requests`, String(amount), why))
      }
    }
  }
  return errors
}

const COUNTS = ['initialDelaySeconds', 'timeoutSeconds', 'periodSeconds', 'successThreshold', 'failureThreshold']

function probeErrors(probe: JsonObject, path: string): FieldError[] {
  return [
    ...handlerErrors(probe, ['exec', 'httpGet', 'tcpSocket', 'grpc'], path),
    ...COUNTS.flatMap((field) => nonNegative(`${path}.${field}`, probe[field])),
  ]
}

function handlerErrors(handler: JsonObject, types: readonly string[], path: string): FieldError[] {
  const [first, ...others] = types.filter((type) => isJsonObject(handler[type]))
  if (first === undefined) return [required(path, 'must specify a handler type')]
  const errors = others.map((type) => forbiddenField(`${path}.${type}`, 'may not specify more than 1 handler type'))
  const given = objectOf(handler[first])
  if (first === 'exec' && !(Array.isArray(given.command) && given.command.length > 0))
    errors.unshift(required(`${path}.exec.command`))
  if (first === 'httpGet' || first === 'tcpSocket') errors.unshift(...portOrName(`${path}.${first}.port`, given.port))
  return errors
}

/** Names that appear twice among the containers of all kinds. */
export function repeatedNames(spec: JsonObject): FieldError[] {
  const seen = new Set<unknown>()
  return ['containers', 'initContainers'].flatMap((list) =>
    objectsIn(spec[list]).flatMap(({ name }, index) => {
      const isRepeated = name && seen.has(name)
      seen.add(name)
      return isRepeated ? [duplicate(`spec.${list}[${index}].name`, name)] : []
    }),
  )
}

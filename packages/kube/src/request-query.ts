import type { LogStreamOptions } from '@corral/ports'
import type { DeleteOptions, ExecOptions, ListOptions, PatchOptions, WriteOptions } from './kube-client.js'

type Value = string | number | boolean | undefined

function set(query: URLSearchParams, values: Readonly<Record<string, Value>>): URLSearchParams {
  for (const name in values) {
    const value = values[name]
    if (value !== undefined) query.set(name, String(value))
  }
  return query
}

export function listQuery(options: ListOptions, query: URLSearchParams = new URLSearchParams()): URLSearchParams {
  const { labelSelector, fieldSelector, limit, resourceVersion, resourceVersionMatch } = options
  const values = {
    labelSelector,
    fieldSelector,
    limit,
    continue: options.continue,
    resourceVersion,
    resourceVersionMatch,
  }
  return set(query, values)
}

export function writeQuery({ fieldManager, dryRun, fieldValidation }: WriteOptions): URLSearchParams {
  return set(new URLSearchParams(), { fieldManager, fieldValidation, dryRun: dryRun ? 'All' : undefined })
}

export function patchQuery(options: PatchOptions): URLSearchParams {
  return set(writeQuery(options), { force: options.force })
}

/** DeleteOptions as a body, or nothing when the server's defaults are wanted. */
export function deleteBody(options: DeleteOptions): { body?: object; contentType?: string } {
  const { gracePeriodSeconds, propagationPolicy, preconditions } = options
  if (gracePeriodSeconds === undefined && propagationPolicy === undefined && preconditions === undefined) return {}
  const body = {
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    ...(propagationPolicy === undefined ? {} : { propagationPolicy }),
    ...(preconditions === undefined ? {} : { preconditions }),
  }
  return { body, contentType: 'application/json' }
}

/** Exec and attach: output is always wanted, and with a terminal stderr does not exist. */
export function execQuery(options: Partial<ExecOptions>): URLSearchParams {
  const { container, stdin = false, tty = false, command = [] } = options
  const query = set(new URLSearchParams(), { container, stdin, stdout: true, stderr: !tty, tty })
  for (const part of command) query.append('command', part)
  return query
}

export function logQuery(options: Partial<LogStreamOptions>): URLSearchParams {
  const { signal: _, ...values } = options
  return set(new URLSearchParams(), values)
}

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ManagerCall } from './column.js'

const policy = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived', 'ResponseStarted'],
  rules: [{ level: 'Metadata', userGroups: ['system:serviceaccounts'] }, { level: 'None' }],
}

/** Makes kube-apiserver write down what service accounts do: the flags for it, and a reader of what was written. */
export function auditLog(directory: string): { flags: string[]; callsOf(user: string): ManagerCall[] } {
  const policyFile = join(directory, 'audit-policy.json')
  const logFile = join(directory, 'audit.log')
  writeFileSync(policyFile, JSON.stringify(policy))
  return {
    flags: [`--audit-policy-file=${policyFile}`, `--audit-log-path=${logFile}`, '--audit-log-mode=blocking'],
    callsOf: (user) => distinctCalls(readFileSync(logFile, 'utf8'), user),
  }
}

interface AuditEvent {
  verb: string
  user: { username: string }
  objectRef?: { apiGroup?: string; resource?: string; subresource?: string; namespace?: string; name?: string }
  responseStatus?: { code?: number; message?: string }
  annotations?: Record<string, string>
}

/** The kinds of calls a user made, each once, from the lines of an audit log. */
export function distinctCalls(log: string, user: string): ManagerCall[] {
  const calls = new Map<string, ManagerCall>()
  for (const line of log.split('\n')) {
    if (!line) continue
    const { verb, user: caller, objectRef, responseStatus, annotations }: AuditEvent = JSON.parse(line)
    if (caller.username !== user || !objectRef) continue
    const { apiGroup: group = '', resource = '', subresource, namespace = '', name = '' } = objectRef
    const full = subresource ? `${resource}/${subresource}` : resource
    const isRefused = annotations?.['authorization.k8s.io/decision'] === 'forbid' || responseStatus?.code === 403
    // A namespace that is going away refuses new content to every client.
    const isForbidden = isRefused && !responseStatus?.message?.includes('is being terminated')
    const key = [verb, group, full, isForbidden].join(' ')
    if (!calls.has(key))
      calls.set(key, { verb, group, resource: full, allowed: !isForbidden, example: `${namespace}/${name}` })
  }
  return [...calls.values()].sort((a, b) => (a.group + a.resource + a.verb < b.group + b.resource + b.verb ? -1 : 1))
}

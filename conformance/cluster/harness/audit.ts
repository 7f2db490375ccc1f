import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ControlPlane } from '../../../tools/oracle/index.js'

/** A request of one of our accounts as the API server wrote it down. */
export interface AuditedRequest {
  readonly account: string
  readonly verb: string
  readonly group: string
  /** With the subresource, as roles name it. */
  readonly resource: string
  readonly name: string
  readonly isAllowed: boolean
}

interface AuditEvent {
  verb: string
  user: { username: string }
  objectRef?: { apiGroup?: string; resource?: string; subresource?: string; name?: string }
  responseStatus?: { code?: number }
}

/** Every request of the accounts in the installation's namespace so far. */
export function requestsOf({ directory }: ControlPlane): AuditedRequest[] {
  const file = join(directory, 'logs', 'audit.log')
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as AuditEvent)
    .map(({ verb, user, objectRef = {}, responseStatus }) => ({
      account: user.username.split(':').at(-1) ?? '',
      verb,
      group: objectRef.apiGroup ?? '',
      resource: [objectRef.resource, objectRef.subresource].filter(Boolean).join('/'),
      name: objectRef.name ?? '',
      isAllowed: responseStatus?.code !== 403,
    }))
}

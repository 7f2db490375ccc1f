import type { TLSSocket } from 'node:tls'
import type { KubeClient } from '@corral/kube'
import { SubjectAccessReviews } from '@corral/resources'

/** Who a client certificate speaks for: its common name, and its organizations as groups. */
export interface Caller {
  name: string
  groups: string[]
}

/** Whether a caller may use the node this way. A failure to find out is a failure of the request. */
export type Authorize = (caller: Caller, verb: 'get' | 'create') => Promise<boolean>

/** Asks the API server whether the caller may use `nodes/proxy` of this node, as a kubelet does. */
export function subjectAccess(client: Pick<KubeClient, 'create'>, nodeName: string): Authorize {
  return async ({ name, groups }, verb) => {
    const resourceAttributes = {
      group: '',
      version: 'v1',
      resource: 'nodes',
      subresource: 'proxy',
      name: nodeName,
      verb,
    }
    const review = await client.create(SubjectAccessReviews, { spec: { user: name, groups, resourceAttributes } })
    return review.status?.allowed === true
  }
}

/** The caller of a connection whose certificate has been verified; undefined where it has no common name. */
export function callerOf(socket: TLSSocket): Caller | undefined {
  const subject = socket.getPeerCertificate()?.subject as Record<string, string | string[] | undefined> | undefined
  const [name] = [subject?.CN ?? []].flat()
  return name ? { name, groups: [subject?.O ?? []].flat() } : undefined
}

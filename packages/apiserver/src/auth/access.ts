import type { ApiUser } from '@corral/ports'

export interface AccessQuestion {
  readonly verb: string
  readonly group: string
  readonly resource: string
}

/** Groups whose members may do everything; other users may only send access reviews. */
export const ADMIN_GROUP = 'system:masters'

/** The user the platform itself acts as, inside this process. */
export const systemUser: ApiUser = { name: 'system:apiserver', groups: [ADMIN_GROUP, 'system:authenticated'] }

const REVIEW_GROUPS = ['authorization.k8s.io', 'authentication.k8s.io']

/** The whole authorization rule: administrators everything, authenticated others (service accounts) only reviews. */
export function mayDo(user: ApiUser, question: AccessQuestion): boolean {
  if (user.groups.includes(ADMIN_GROUP)) return true
  return question.verb === 'create' && REVIEW_GROUPS.includes(question.group) && question.resource.endsWith('reviews')
}

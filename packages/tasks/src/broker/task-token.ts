import { createHmac, timingSafeEqual } from 'node:crypto'

/**
 * Tokens that name one task. They are derived from a secret of the platform, so a restarted broker accepts the tokens
 * of tasks that went on meanwhile, and nothing needs to be stored.
 */
export interface TaskTokens {
  issue(taskUid: string): string
  /** The task a token names, or undefined when it is not one of ours. */
  verify(token: string): string | undefined
}

const prefix = 'corral-task.'

export function createTaskTokens(secret: string): TaskTokens {
  const sign = (uid: string): string => createHmac('sha256', secret).update(`task-token.v1.${uid}`).digest('base64url')
  return {
    issue: (uid) => `${prefix}${uid}.${sign(uid)}`,
    verify(token) {
      if (!token.startsWith(prefix)) return undefined
      const [uid, signature, ...rest] = token.slice(prefix.length).split('.')
      if (!uid || !signature || rest.length > 0) return undefined
      const expected = Buffer.from(sign(uid))
      const given = Buffer.from(signature)
      return expected.length === given.length && timingSafeEqual(expected, given) ? uid : undefined
    },
  }
}

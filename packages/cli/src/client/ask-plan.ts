import type { TasksClient } from '@corral/protocol'
import { ask } from './ask-follow-up.js'

/** What a person said to a plan. */
export type PlanReply = { verdict: 'approve' } | { verdict: 'reject' } | { verdict: 'revise'; remark: string }

/** `y` and `n` decide; anything else is what to change; nothing is asked again. */
export function planReply(text: string): PlanReply | undefined {
  const word = text.trim()
  if (word === '') return undefined
  if (/^y(es)?$/i.test(word)) return { verdict: 'approve' }
  if (/^n(o)?$/i.test(word)) return { verdict: 'reject' }
  return { verdict: 'revise', remark: word }
}

/** Asks on the terminal what becomes of the plan, and tells the platform. Leaving the question decides nothing. */
export async function askAboutPlan(client: TasksClient, id: string, revision: number): Promise<void> {
  const text = await ask('\ncarry out this plan? (y, n, or what to change): ')
  const reply = text === undefined ? undefined : planReply(text)
  if (!reply) {
    process.stderr.write(`corral: undecided; go on with \`corral task approve ${id}\`\n`)
    return
  }
  if (reply.verdict === 'approve') await client.approve(id, { revision })
  else if (reply.verdict === 'reject') await client.reject(id, { revision })
  else await client.revise(id, { revision, remark: reply.remark })
}

import { createInterface } from 'node:readline/promises'
import type { TaskView } from '@corral/protocol'
import { letGo, takeUp } from './terminal.js'

export interface FollowUpSituation {
  isTerminal: boolean
  json?: boolean | undefined
  once?: boolean | undefined
  /** What the variable CI holds. */
  ci?: string | undefined
}

/** Whether `corral run` asks for a follow-up: it runs in a terminal, and the task has a commit to go on from. */
export function offersFollowUp(task: TaskView, { isTerminal, json, once, ci }: FollowUpSituation): boolean {
  if (!isTerminal || json || once || (ci !== undefined && ci !== '' && ci !== 'false')) return false
  return task.status !== 'CANCELLED' && task.base_commit !== undefined
}

export const askFollowUp = (): Promise<string | undefined> => ask('\nfollow-up (empty to end): ')

/** Asks on the terminal; undefined for an empty line, the end of input or an interrupt. */
export async function ask(question: string, output: NodeJS.WriteStream = process.stdout): Promise<string | undefined> {
  takeUp(process.stdin)
  const lines = createInterface({ input: process.stdin, output })
  const left = new AbortController()
  lines.once('close', () => left.abort())
  lines.once('SIGINT', () => lines.close())
  try {
    const text = await lines.question(question, { signal: left.signal })
    return text.trim() === '' ? undefined : text
  } catch {
    // The end of input, or an interrupt: there is no answer.
    output.write('\n')
    return undefined
  } finally {
    lines.close()
    letGo(process.stdin)
  }
}

import type { TaskSummary } from '@corral/protocol'
import { hasEnded, statusWord } from './status-words.js'

type NoticedTask = Pick<TaskSummary, 'id' | 'title'> & { status: string; cause?: { code: string } | undefined }

export interface Notice {
  readonly id: string
  /** The same in every tab, so that the browser shows one notice for all of them. */
  readonly tag: string
  readonly title: string
  readonly text: string
}

/** What a notification tells while the page is in the background: a task that waits for an answer, and one that has ended. */
export function noticesOf(before: ReadonlyMap<string, NoticedTask>, after: ReadonlyMap<string, NoticedTask>): Notice[] {
  const notices: Notice[] = []
  for (const { id, title, status, cause } of after.values()) {
    const former = before.get(id)
    // One that was not known yet is not news: it may have ended long ago.
    if (!former || former.status === status || status === 'CANCELLED') continue
    const { word, tone } = statusWord(status)
    if (tone !== 'attention' && !hasEnded(status)) continue
    notices.push({ id, tag: `${id} ${status}`, title: cause ? `${word}: ${cause.code}` : word, text: title || id })
  }
  return notices
}

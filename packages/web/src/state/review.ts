import { type DraftComment, isComments, placeKey } from '../model/comments.js'
import { remembered } from './preferences.js'

/** Remarks that were typed and not sent, by task and commit: they survive the page. */
const drafts = remembered<Record<string, DraftComment[]>>('comments', {}, isComments)

const none: readonly DraftComment[] = []

export const commentsOf = (key: string): readonly DraftComment[] => drafts.value[key] ?? none

/** Keeps a remark; an empty one takes that of its place away. */
export function setComment(key: string, comment: DraftComment): void {
  const others = commentsOf(key).filter((other) => other.path !== comment.path || placeKey(other) !== placeKey(comment))
  drafts.value = { ...drafts.value, [key]: comment.text.trim() === '' ? others : [...others, comment] }
}

export function clearComments(key: string): void {
  const { [key]: _, ...rest } = drafts.value
  drafts.value = rest
}

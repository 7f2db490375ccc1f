import { formatGitIdentity, type GitIdentity } from '@corral/protocol'

const subjectCharacters = 72
const bodyCharacters = 4_000

export interface CommitWords {
  prompt: string
  taskName: string
  /** The last thing the agent said. */
  summary?: string | undefined
  /** The agent, where it has a name that belongs into a commit. */
  coAuthor?: GitIdentity | undefined
}

/**
 * The message of a commit we make of work an agent left uncommitted: a subject of 72 characters at most and a body from
 * the agent's summary, else a subject from the prompt; then trailers that name the agent and lead back to the task.
 */
export function commitMessage({ prompt, taskName, summary, coAuthor }: CommitWords): string {
  const { subject, body } = wordsOf(summary) ?? wordsOf(firstLine(prompt)) ?? { subject: 'Work of a coding agent' }
  const trailers = [
    `Corral-Task: ${taskName}`,
    ...(coAuthor ? [`Co-authored-by: ${formatGitIdentity(coAuthor)}`] : []),
  ].join('\n')
  return `${[subject, ...(body ? [body] : []), trailers].join('\n\n')}\n`
}

function wordsOf(text: string | undefined): { subject: string; body?: string } | undefined {
  const clean = (text ?? '')
    .replaceAll(/\r\n?/g, '\n')
    // Text of an agent, which terminals show: no control characters but the ends of lines.
    .replaceAll(/[^\P{Cc}\n\t]/gu, '')
    .trim()
  const [line = '', ...rest] = clean.split('\n')
  const first = line
    .replace(/^(#{1,6}|[-*>])\s+/, '')
    .replaceAll('**', '')
    .trim()
  if (first === '') return undefined
  const isCut = first.length > subjectCharacters
  const body = (isCut ? clean : rest.join('\n')).trim().slice(0, bodyCharacters).trimEnd()
  return { subject: isCut ? cut(first) : first, ...(body && body !== first ? { body } : {}) }
}

/** Ends with a whole word where there is one to end with. */
function cut(line: string): string {
  const room = line.slice(0, subjectCharacters - 3)
  const atWord = room.slice(0, room.lastIndexOf(' '))
  return `${(atWord.length > subjectCharacters / 2 ? atWord : room).trimEnd()}...`
}

const firstLine = (prompt: string): string => prompt.trim().split('\n', 1)[0] ?? ''

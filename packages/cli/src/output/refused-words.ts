import type { TaskView } from '@corral/protocol'
import { shellQuote } from './shell-quote.js'
import { terminalText } from './terminal-text.js'

type Refused = NonNullable<TaskView['refused']>[number]

/** What a task tried to reach and did not get, a line each, with the flag where one helps. */
export function refusedWords({
  refused,
  repo,
  environment_file: file,
}: Pick<TaskView, 'refused' | 'repo' | 'environment_file'>): string[] {
  return (refused ?? []).map((entry) => {
    const times = entry.count > 1 ? ` (${entry.count} times)` : ''
    const by = entry.process ? ` by ${terminalText(entry.process)}` : ''
    const grant =
      entry.reason === 'NotAllowed' && file
        ? `, or for its environment: corral env grant ${shellQuote(repo)} ${terminalText(ruleOf(entry))}`
        : ''
    return `tried ${terminalText(addressOf(entry))}${by}${times}${whatToDo(entry)}${grant}`
  })
}

function addressOf({ host, port }: Refused): string {
  return port === undefined ? host : `${host}:${port}`
}

/** A name is refused before a port is asked for: the one of https is the likeliest. */
function ruleOf({ host, port }: Refused): string {
  return `${host}:${port ?? 443}`
}

function whatToDo(entry: Refused): string {
  switch (entry.reason) {
    case 'NotAllowed':
      return `; allow it with --allow ${terminalText(ruleOf(entry))}`
    case 'TooManyNames':
      return ': too many names below a wildcard; allow the ones it needs by name'
    case 'Unresolved':
      return ': it is allowed, but DNS has no such name'
    case 'ForbiddenAddress':
      return ': it is allowed, but leads to an address of this machine or its network'
    case 'Unreachable':
      return ': it is allowed, but does not answer'
  }
}

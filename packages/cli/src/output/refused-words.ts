import type { TaskView } from '@corral/protocol'
import { terminalText } from './terminal-text.js'

type Refused = NonNullable<TaskView['refused']>[number]

/** What a task tried to reach and did not get, a line each, with the flag where one helps. */
export function refusedWords(refused: TaskView['refused']): string[] {
  return (refused ?? []).map((entry) => {
    const times = entry.count > 1 ? ` (${entry.count} times)` : ''
    return `tried ${terminalText(addressOf(entry))}${times}${whatToDo(entry)}`
  })
}

function addressOf({ host, port }: Refused): string {
  return port === undefined ? host : `${host}:${port}`
}

function whatToDo({ host, port, reason }: Refused): string {
  switch (reason) {
    case 'NotAllowed':
      // A name is refused before a port is asked for: the one of https is the likeliest.
      return `; allow it with --allow ${terminalText(host)}:${port ?? 443}`
    case 'TooManyNames':
      return ': too many names below a wildcard; allow the ones it needs by name'
    case 'Unresolved':
      return ': it is allowed, but nobody knows this name'
    case 'ForbiddenAddress':
      return ': it is allowed, but leads to an address of this machine or its network'
    case 'Unreachable':
      return ': it is allowed, but does not answer'
  }
}

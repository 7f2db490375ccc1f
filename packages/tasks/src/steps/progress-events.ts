import type { SandboxContext } from '../environment/sandbox-context.js'

const betweenMs = 2_000

/**
 * Takes the progress lines of a git that works for long and makes events of some of them: none in the first two seconds,
 * then one every two. A log that cannot be written to must not stop the fetch.
 */
export function progressEvents({ task, eventLog, now, log }: SandboxContext): (line: string) => void {
  let lastMs = now().getTime()
  return (line) => {
    if (!/\d+%/.test(line) || now().getTime() - lastMs < betweenMs) return
    lastMs = now().getTime()
    eventLog
      .append(task.metadata.uid, [
        { type: 'stage', stage: 'repository', state: 'progress', detail: line.slice(0, 200) },
      ])
      .catch((error: unknown) => log.debug('progress was not recorded', { error }))
  }
}

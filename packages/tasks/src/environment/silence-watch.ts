import { taskWarning } from '@corral/protocol'
import type { SandboxContext } from './sandbox-context.js'

const silentAfterMs = 60_000

/** Says so in the task's events when a command has been quiet for a minute, once for each silence. */
export function watchSilence(
  { task, eventLog, log }: Pick<SandboxContext, 'task' | 'eventLog' | 'log'>,
  afterMs: number = silentAfterMs,
): { heard(): void; stop(): void } {
  let timer: NodeJS.Timeout | undefined
  const tell = (): void => {
    const detail = `no output for ${Math.round(afterMs / 1000)} s`
    eventLog
      .append(task.metadata.uid, [{ type: 'warning', ...taskWarning('SetupSilent', { detail }) }])
      .catch((error: unknown) => log.debug('silence not told', { error }))
  }
  const heard = (): void => {
    clearTimeout(timer)
    timer = setTimeout(tell, afterMs)
  }
  heard()
  return { heard, stop: () => clearTimeout(timer) }
}

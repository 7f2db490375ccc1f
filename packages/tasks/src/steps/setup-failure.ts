import type { AgentTask } from '@corral/resources'

/** What ended, how, and its last words: the set-up, or the `update` of an environment on a snapshot with other lock files. Pure. */
export function setupFailureMessage(
  { spec, status }: Pick<AgentTask, 'spec' | 'status'>,
  { exitCode, tail }: { exitCode: number; tail: string },
): string {
  const { snapshot, update } = status?.environment ?? {}
  const isUpdate = snapshot !== undefined && update !== undefined && spec.setup === undefined
  const what = isUpdate
    ? `the update command, which brings snapshot ${snapshot.name} up to date where lock files differ,`
    : 'the set-up command'
  return `${what} ended with exit code ${exitCode}${tail.trim() === '' ? ' and said nothing' : `: ${tail}`}`
}

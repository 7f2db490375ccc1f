import type { AgentParser } from '@corral/agents'
import type { DaemonClient, OutputEvent } from '@corral/protocol'
import type { AgentTask, AgentTaskStatus, Stored } from '@corral/resources'
import { inboxEntries, reportOf } from '../questions/inbox-entries.js'
import type { StepContext } from './step.js'

/** The conversation with one run of an agent while its output is followed. */
export interface AgentTalk {
  hear(event: OutputEvent): void
  /** What the record has to know of it once the run is over. */
  status(): Pick<AgentTaskStatus, 'readMessages'>
  stop(): Promise<void>
}

const retryMs = 1_000

/** Where a run finds what it is told. A run has one of its own: what another one read is not for it. */
export function inboxDirectory(scratch: string, run: string): string {
  return `${scratch}/inbox-${run}`
}

/**
 * Tells the agent what people say and answer while it runs, and reports what it asks and has read. Everything is derived from
 * the task and from the output: after a restart the same files are written again, which the program beside the agent takes
 * once. Nothing is reported before the output that was there at the start has been heard: until then questions that wait
 * would seem to be settled.
 */
export async function startTalk(
  daemon: DaemonClient,
  context: StepContext,
  { run, processId }: { run: string; processId: string },
): Promise<AgentTalk | undefined> {
  const { adapter, signal, log } = context
  const ear = adapter.createParser()
  if (ear.read === undefined && ear.questions === undefined) return undefined
  const { output_bytes: knownBytes = 0 } = (await daemon.findProcess(processId, { signal })) ?? {}
  const { scratch } = await context.findWorkspace()
  const directory = inboxDirectory(scratch, run)
  const written = new Set<string>()
  let task: Stored<AgentTask> = context.task
  let heardBytes = 0
  let isStopped = false
  let isWanted = false
  let reported = ''
  let writing: Promise<void> | undefined
  let retry: NodeJS.Timeout | undefined

  const heard = (parser: AgentParser) => ({ questions: parser.questions ?? [], read: parser.read ?? [] })
  const write = async (): Promise<void> => {
    while (isWanted && !isStopped) {
      isWanted = false
      for (const [name, entry] of inboxEntries(task, heard(ear), { run, adapter })) {
        if (written.has(name)) continue
        await daemon.writeFile(`${directory}/${name}`, JSON.stringify(entry), { mode: '0600', mkdirs: true, signal })
        written.add(name)
      }
    }
  }
  const update = (): void => {
    if (isStopped || heardBytes < knownBytes) return
    const report = reportOf(run, heard(ear))
    const text = JSON.stringify(report)
    if (text !== reported) context.report(report)
    reported = text
    isWanted = true
    writing ??= write()
      .catch((error: unknown) => {
        isWanted = false
        if (isStopped || signal.aborted) return
        log.warn('the agent could not be told something, trying again', { error })
        retry = setTimeout(update, retryMs)
      })
      .finally(() => {
        writing = undefined
        // Something was said between the last look and here.
        if (isWanted) update()
      })
  }
  const stopWatching = context.watchTask((next) => {
    task = next
    update()
  })
  update()
  return {
    hear(event) {
      if (event.type === 'exit') return
      heardBytes = event.offset + (event.type === 'gap' ? event.bytes : event.data.length)
      if (event.type === 'gap') ear.skip()
      else ear.push(event.data, event.stream)
      update()
    },
    status() {
      const read = [...new Set([...(context.task.status?.readMessages ?? []), ...(ear.read ?? [])])]
      return read.length > 0 ? { readMessages: read } : {}
    },
    async stop() {
      isStopped = true
      stopWatching()
      clearTimeout(retry)
      await writing
    },
  }
}

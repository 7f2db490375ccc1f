import { TasksClient, type TaskView } from '@corral/protocol'
import { commandTask, type PlatformAddress } from './task-requests.js'

/** Says when it begins by the clock of the machine, then changes something. */
const agent = 'date +%s%3N; echo "$CORRAL_PROMPT" >> said.txt'

/**
 * From a message to the moment its agent runs, by the agent's own word, on a sandbox that was held or on a new one. What a
 * shell itself needs to start is part of it.
 */
export async function followUpStartsMs(
  platform: PlatformAddress,
  repository: string,
  options: { rounds: number; holdSeconds: number; beforeEach(): Promise<void> },
): Promise<number[]> {
  const client = new TasksClient({ baseUrl: platform.url, token: platform.token })
  const ended = async (id: string): Promise<TaskView> => {
    const task = await client.wait(id)
    if (task.status !== 'SUCCEEDED') throw new Error(`${id} ended as ${task.status}: ${JSON.stringify(task.cause)}`)
    return task
  }
  const request = { ...commandTask(repository, agent), hold_sandbox_seconds: options.holdSeconds }
  let last = await ended((await client.create(request)).id)
  const startsMs: number[] = []
  for (let round = 0; round < options.rounds; round += 1) {
    await options.beforeEach()
    const sentAt = Date.now()
    const sent = await client.send(last.id, { task: `round ${round}` })
    if (!('id' in sent)) throw new Error('the message was queued')
    const pod = last.sandbox?.pod
    last = await ended(sent.id)
    if ((last.sandbox?.pod === pod) !== options.holdSeconds > 0) throw new Error('not in the sandbox it was to be in')
    startsMs.push((await saidAt(client, last.id)) - sentAt)
  }
  if (options.holdSeconds > 0) await client.release(last.id)
  return startsMs
}

async function saidAt(client: TasksClient, id: string): Promise<number> {
  let text = ''
  for await (const chunk of client.logs(id)) text += Buffer.from(chunk).toString('utf8')
  return Number(text.split('\n', 1)[0])
}

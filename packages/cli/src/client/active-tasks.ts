import { isFinalPhase, type TasksClient, type TaskView } from '@corral/protocol'

/** Every task that waits or runs, newest first. */
export async function activeTasks(client: TasksClient): Promise<TaskView[]> {
  const found: TaskView[] = []
  for (let after: string | undefined, isMore = true; isMore; ) {
    const page = await client.list({ limit: 500, ...(after ? { after } : {}) })
    found.push(...page.tasks.filter(({ status }) => !isFinalPhase(status)))
    after = page.next
    isMore = after !== undefined
  }
  return found
}

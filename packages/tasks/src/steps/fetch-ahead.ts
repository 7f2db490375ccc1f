import type { AgentTask, Stored } from '@corral/resources'
import type { TaskRecords } from '../records/task-records.js'
import type { PrepareRequest, Repository } from '../repository/repository.js'
import { branchOf } from '../task-state/branch-of.js'

interface FetchAheadPorts {
  repository: Pick<Repository, 'fetchAhead'>
  records: Pick<TaskRecords, 'of'>
}

/** The repository of a task and its branches, the same for the fetch and for what waits for it. */
export function whereFrom(task: Stored<AgentTask>): Pick<PrepareRequest, 'url' | 'baseBranch' | 'newBranch'> {
  const { repository, baseBranch } = task.spec
  return { url: repository.url, ...(baseBranch ? { baseBranch } : {}), newBranch: branchOf(task) }
}

/** Begins to fetch what the repository step will need. It never fails: that step says what is wrong. */
export async function fetchAhead(
  task: Stored<AgentTask>,
  { repository, records }: FetchAheadPorts,
  signal: AbortSignal,
): Promise<void> {
  // These go on from commits of another task, or of an earlier run.
  if (task.spec.continues || task.spec.retry || task.status?.baseCommit) return
  try {
    const taskDirectory = await records.of(task.metadata.uid).workDirectory()
    repository.fetchAhead({ ...whereFrom(task), taskDirectory, signal })
  } catch {
    // The step meets the same.
  }
}

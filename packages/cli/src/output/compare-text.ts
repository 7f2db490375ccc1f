import type { GroupView, TaskView } from '@corral/protocol'
import { checkWords } from './check-text.js'
import { shellQuote } from './shell-quote.js'
import { table } from './table.js'

/** Attempts side by side, then the next move. */
export function compareText(group: GroupView, dataDir?: string): string {
  const header = ['', 'ID', 'AGENT', 'STATUS', 'CHECKS', 'CHANGE', 'COST', 'TIME', 'BRANCH']
  const rows = group.tasks.map((task) => [
    `${task.group?.number ?? ''}${group.picked?.task === task.id ? '*' : ''}`,
    task.id,
    task.agent.model ? `${task.agent.name} (${task.agent.model})` : task.agent.name,
    task.cause ? `${task.status} ${task.cause.code}` : task.status,
    checkWords(task) ?? '-',
    changeWords(task),
    task.usage?.cost_usd === undefined ? '-' : `$${task.usage.cost_usd.toFixed(2)}`,
    timeWords(task),
    task.branch ?? '-',
  ])
  return [table(header, rows), ...pickedWords(group, dataDir)].join('\n')
}

function pickedWords({ picked, branch, tasks }: GroupView, dataDir: string | undefined): string[] {
  const at = dataDir === undefined ? '' : ` --data-dir ${shellQuote(dataDir)}`
  if (picked?.status === 'SUCCEEDED') return [`* is on ${branch}`]
  if (picked) return [`* was picked for ${branch} (task ${picked.by}: ${picked.status})`]
  const best = tasks.find((task) => task.status === 'SUCCEEDED' && task.outcome === 'changes')
  return best ? [`to give one the branch ${branch}: corral task pick ${best.id}${at}`] : []
}

function changeWords({ diff_stat: stat, outcome }: TaskView): string {
  if (!stat) return outcome === 'no_changes' ? 'none' : '-'
  const files = stat.files_changed === 1 ? '1 file' : `${stat.files_changed} files`
  return `${files} +${stat.insertions} -${stat.deletions}`
}

/** How long the agent ran. */
function timeWords({ times }: TaskView): string {
  if (!times?.running_at || !times.agent_finished_at) return '-'
  const seconds = (Date.parse(times.agent_finished_at) - Date.parse(times.running_at)) / 1000
  return seconds < 120 ? `${seconds.toFixed(1)}s` : `${Math.round(seconds / 60)}m`
}

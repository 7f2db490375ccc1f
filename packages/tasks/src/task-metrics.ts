import type { AgentTask, Stored } from '@corral/resources'
import { Counter, Histogram, type Registry } from 'prom-client'

/** What the platform counts about tasks. Labels come from small fixed sets. */
export interface TaskMetrics {
  created(): void
  finished(task: Stored<AgentTask>, code: string): void
}

export function promTaskMetrics(registry: Registry): TaskMetrics {
  const created = new Counter({ name: 'corral_tasks_created_total', help: 'Tasks accepted', registers: [registry] })
  const ended = new Counter({
    name: 'corral_tasks_finished_total',
    help: 'Tasks at their end, by cause; Succeeded has none',
    labelNames: ['code', 'agent'],
    registers: [registry],
  })
  const duration = new Histogram({
    name: 'corral_task_duration_seconds',
    help: 'From accepted to recorded',
    labelNames: ['code'],
    buckets: [1, 5, 15, 60, 300, 900, 1800, 3600],
    registers: [registry],
  })
  return {
    created: () => created.inc(),
    finished(task, code) {
      ended.inc({ code, agent: task.spec.agent.name })
      duration.observe({ code }, (Date.now() - Date.parse(task.metadata.creationTimestamp)) / 1000)
    },
  }
}

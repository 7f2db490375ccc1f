import { setTimeout as sleep } from 'node:timers/promises'
import type { KubeClient } from '@corral/kube'
import type { AnswerQuestionRequest, PlanVerdict, TaskView } from '@corral/protocol'
import { type AgentTask, AgentTasks, isConflict, type Stored } from '@corral/resources'
import { checkDecision } from './plan-approval/plan-decision.js'
import { mayStillAsk, withAnswer } from './questions/question-answer.js'
import { taskView } from './task-view.js'

/** What people decide while a task waits for them. */
export interface TaskDecisions {
  /** Decides about the plan a task waits with. 409 where it does not fit: late, twice, or about another revision. */
  decide(id: string, verdict: PlanVerdict, decision: PlanDecisionRequest): Promise<TaskView>
  /** Answers a question the agent waits with. 409 where it does not fit: late, twice, or to nothing that was asked. */
  answer(id: string, request: AnswerQuestionRequest): Promise<TaskView>
}

/** What comes with a verdict on a plan. */
export interface PlanDecisionRequest {
  revision: number
  plan?: string | undefined
  remark?: string | undefined
}

/** How long a question is waited for that the record does not hold yet. */
const questionRecordMs = 2_000

export function createTaskDecisions({
  client,
  getTask,
}: {
  client: Pick<KubeClient, 'update'>
  getTask(id: string): Promise<Stored<AgentTask>>
}): TaskDecisions {
  /** Writes what `change` makes of the spec. After a conflict it is asked again: what was written decides whether it still fits. */
  const write = async (
    id: string,
    change: (task: Stored<AgentTask>) => Partial<AgentTask['spec']>,
  ): Promise<TaskView> => {
    for (;;) {
      const task = await getTask(id)
      const changed = change(task)
      try {
        return taskView(await client.update(AgentTasks, { ...task, spec: { ...task.spec, ...changed } }))
      } catch (error) {
        if (!isConflict(error)) throw error
      }
    }
  }
  return {
    decide: (id, verdict, { revision, plan, remark }) =>
      write(id, (task) => {
        const now = new Date()
        checkDecision(task, revision, now)
        const words = { ...(plan ? { plan } : {}), ...(remark ? { remark } : {}) }
        return { decision: { revision, verdict, ...words, at: now.toISOString() } }
      }),
    async answer(id, request) {
      // The event that tells of a question may be read a moment before the record of the task has it.
      const waitUntilMs = Date.now() + questionRecordMs
      while (mayStillAsk(await getTask(id), request.question) && Date.now() < waitUntilMs) await sleep(50)
      return write(id, (task) => ({ answers: withAnswer(task, request, new Date()) }))
    },
  }
}

import type { TaskEvent, TaskSummary } from '@corral/protocol'
import { exampleNow, summaries } from './example-platform.js'

/** Much of everything, the same every time. */

/** Tasks in all states; each has its number in its title. */
export function manyTasks(count: number): TaskSummary[] {
  return Array.from({ length: count }, (_, index) => {
    const like = summaries[index % summaries.length] as TaskSummary
    return {
      ...like,
      id: `task-n${index}`,
      // All of one kind, so that the last one made is the last one shown.
      status: 'SUCCEEDED',
      outcome: 'no_changes',
      title: `Task number ${index}`,
      created_at: new Date(exampleNow.getTime() - index * 1_000).toISOString(),
    }
  })
}

/** What an agent does: a message, a call, its result, some output; the step is in each. */
export function manyEvents(count: number, from = 1): TaskEvent[] {
  return Array.from({ length: count }, (_, index): TaskEvent => {
    const sequence = from + index
    const place = { sequence, time: new Date(exampleNow.getTime() - (count - index) * 100).toISOString() }
    switch (sequence % 4) {
      case 1:
        return {
          ...place,
          type: 'tool_call',
          call_id: `c${sequence}`,
          tool: 'Bash',
          summary: `step ${sequence}: npm test`,
        }
      case 2:
        return {
          ...place,
          type: 'tool_result',
          call_id: `c${sequence - 1}`,
          is_error: false,
          text: `step ${sequence}: passed`,
        }
      case 3:
        return { ...place, type: 'output', stream: 'stdout', text: `step ${sequence}: looking at a file\n` }
      default:
        return { ...place, type: 'message', role: 'assistant', text: `step ${sequence}: **done**, next file` }
    }
  })
}

/** One new file of so many lines. */
export function patchOf(lines: number): string {
  const added = Array.from(
    { length: lines },
    (_, index) => `+const value${index} = compute(${index}) // added line ${index + 1}`,
  )
  return `diff --git a/src/large.ts b/src/large.ts\nnew file mode 100644\nindex 0000000..1111111\n--- /dev/null\n+++ b/src/large.ts\n@@ -0,0 +1,${lines} @@\n${added.join('\n')}\n`
}

import type { TaskEvent, TaskStage, TaskView, TaskWarning } from '@corral/protocol'
import { describeCheck } from './check-text.js'
import { pc } from './colors.js'
import { describeQuestion } from './question-text.js'
import { refusedWords } from './refused-words.js'
import { terminalText } from './terminal-text.js'

const stageWords: Record<TaskStage, string> = {
  claim: 'sandbox claimed',
  sandbox: 'sandbox ready',
  repository: 'repository',
  setup: 'set-up',
  agent: 'agent',
  checks: 'checks',
  result: 'result',
  push: 'push',
  cleanup: 'clean-up',
}

/** One event as lines for a person; undefined for events that say nothing new to one. */
export function describeEvent(event: TaskEvent): string | undefined {
  switch (event.type) {
    case 'stage': {
      if (event.state === 'started' && event.stage !== 'claim' && event.stage !== 'agent') return undefined
      if (event.state === 'progress') return pc.dim(`  … ${terminalText(event.detail ?? '')}`)
      const mark = event.state === 'failed' ? pc.red('✗') : event.state === 'started' ? pc.cyan('▸') : pc.green('✓')
      const word =
        event.stage === 'claim'
          ? 'claiming a sandbox'
          : event.state === 'started'
            ? `${stageWords[event.stage]} started`
            : stageWords[event.stage]
      return `${mark} ${pc.bold(word)}${event.detail ? pc.dim(`  ${terminalText(event.detail)}`) : ''}`
    }
    case 'message':
      if (event.role === 'user') return `${pc.cyan('›')} ${indent(terminalText(event.text)).trimStart()}`
      return event.thinking ? pc.dim(indent(terminalText(event.text))) : indent(terminalText(event.text))
    case 'tool_call':
      return `  ${pc.cyan('→')} ${pc.bold(terminalText(event.tool))} ${terminalText(event.summary)}`
    case 'tool_result':
      return event.is_error
        ? pc.red(indent(firstLines(terminalText(event.text), 5), '    '))
        : pc.dim(indent(firstLines(terminalText(event.text), 5), '    '))
    case 'file_changed':
      return `  ${pc.yellow('±')} ${terminalText(event.path)} ${pc.dim(event.change)}`
    case 'output':
      return indent(
        terminalText(event.text).replace(/\n$/, ''),
        event.stage ? pc.dim(`  ${terminalText(event.check ?? event.stage)} │ `) : pc.dim('  │ '),
      )
    case 'check':
    case 'check_round':
      return describeCheck(event)
    case 'error':
      return `${pc.red('!')} ${terminalText(event.message)}`
    case 'warning':
      return describeWarning(event)
    case 'model_call':
      return event.error ? `${pc.yellow('!')} model call: ${terminalText(event.error)}` : undefined
    case 'plan':
      return `${pc.cyan('◆')} ${pc.bold(`plan, revision ${event.revision}`)}\n${indent(terminalText(event.text))}`
    case 'plan_decision':
      return `${pc.cyan('◆')} ${pc.bold(`plan: ${event.verdict}`)}${event.remark ? pc.dim(`  ${terminalText(event.remark)}`) : ''}`
    case 'question':
      return describeQuestion(event)
    case 'answer':
      return `${pc.cyan('?')} ${event.withdrawn ? pc.dim(`${event.question}: no longer asked`) : `${pc.dim(`${event.question}:`)} ${terminalText(event.text ?? '')}`}`
    case 'usage':
    case 'result':
      return undefined
  }
}

/** How a task ended, with what to do next. */
export function describeEnd(task: TaskView): string {
  const lines: string[] = []
  const seconds = task.times?.finished_at
    ? Math.max(0, (Date.parse(task.times.finished_at) - Date.parse(task.created_at)) / 1000)
    : undefined
  const took = seconds === undefined ? '' : pc.dim(` in ${seconds.toFixed(1)} s`)
  if (task.status === 'SUCCEEDED') {
    lines.push(
      task.outcome === 'no_changes'
        ? `${pc.green('●')} no changes were needed${took}`
        : `${pc.green('●')} ${pc.bold(`branch ${task.branch}`)}${took}`,
    )
  } else {
    lines.push(
      `${pc.red('●')} ${pc.bold(task.status)}: ${terminalText(task.cause?.message ?? 'no cause recorded')} (${task.cause?.code ?? '?'})${took}`,
    )
    if (task.pushed) lines.push(`  work done so far is on branch ${task.branch}`)
    if (task.cause?.hint) lines.push(`  ${pc.yellow('hint:')} ${terminalText(task.cause.hint)}`)
  }
  if (task.diff_stat) {
    const { files_changed, insertions, deletions } = task.diff_stat
    lines.push(
      `  ${files_changed} file${files_changed === 1 ? '' : 's'} changed, ${pc.green(`+${insertions}`)} ${pc.red(`-${deletions}`)}  ${pc.dim(task.commit?.slice(0, 12) ?? '')}`,
    )
  }
  for (const words of refusedWords(task)) lines.push(`  ${pc.yellow('refused:')} ${words}`)
  for (const warning of task.warnings ?? []) lines.push(describeWarning(warning))
  if (task.usage) {
    const { input_tokens, output_tokens, cost_usd, model } = task.usage
    lines.push(
      pc.dim(
        `  ${model ?? 'model'}: ${input_tokens} tokens in, ${output_tokens} out${cost_usd === undefined ? ', price not known' : `, $${cost_usd.toFixed(4)}`}`,
      ),
    )
  }
  return lines.join('\n')
}

function describeWarning({ code, message, path }: TaskWarning): string {
  return `  ${pc.yellow('warning:')} ${path ? `${terminalText(path)}: ` : ''}${terminalText(message)} ${pc.dim(terminalText(code))}`
}

/** Exit codes of commands that wait for a task. */
export const taskExitCodes = { SUCCEEDED: 0, FAILED: 1, TIMED_OUT: 4, CANCELLED: 5 } as const

export function exitCodeOf(task: TaskView): number {
  return task.status in taskExitCodes ? taskExitCodes[task.status as keyof typeof taskExitCodes] : 1
}

function indent(text: string, prefix = '  '): string {
  return text
    .split('\n')
    .map((line) => `${prefix}${line}`)
    .join('\n')
}

function firstLines(text: string, count: number): string {
  const lines = text.split('\n')
  return lines.length <= count ? text : [...lines.slice(0, count), `… ${lines.length - count} more lines`].join('\n')
}

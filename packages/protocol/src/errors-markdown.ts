import { type ErrorCodeEntry, errorCodes } from './error-codes.js'
import { type TaskCauseEntry, taskCauses } from './task-causes.js'
import { type TaskWarningEntry, taskWarnings } from './task-warnings.js'

/** The error and cause tables as the document `docs/errors.md`. Same tables, same text. */
export function renderErrorsMarkdown(): string {
  return [
    '# Errors',
    '',
    'Generated from the tables in `packages/protocol`: `npm run generate` writes it, a test compares it.',
    '',
    '## Error codes',
    '',
    'Every error of the task API and of the sandbox daemon is `{"error": {"code", "message", "hint"}}`; errors thrown by',
    'the SDK carry the same `code`.',
    '',
    '| code | HTTP | retry | meaning | what to do |',
    '|---|---|---|---|---|',
    ...Object.entries<ErrorCodeEntry>(errorCodes).map(
      ([code, entry]) =>
        `| \`${code}\` | ${entry.httpStatus} | ${yesNo(entry.retryable)} | ${entry.summary} | ${entry.hint} |`,
    ),
    '',
    '## How a task can end',
    '',
    'A task that does not succeed records one of these causes, with a message for the case at hand.',
    '',
    '| cause | phase | stage | retry | meaning | what to do |',
    '|---|---|---|---|---|---|',
    ...Object.entries<TaskCauseEntry>(taskCauses).map(
      ([code, entry]) =>
        `| \`${code}\` | ${entry.phase} | ${entry.stage} | ${yesNo(entry.retryable)} | ${entry.summary} | ${entry.hint} |`,
    ),
    '',
    '## What a task can warn of',
    '',
    'A task carries warnings in `warnings`, as `warning` events and in its `result` event.',
    '',
    '| warning | meaning | what to do |',
    '|---|---|---|',
    ...Object.entries<TaskWarningEntry>(taskWarnings).map(
      ([code, entry]) => `| \`${code}\` | ${entry.summary} | ${entry.hint} |`,
    ),
    '',
  ].join('\n')
}

const yesNo = (value: boolean): string => (value ? 'yes' : 'no')

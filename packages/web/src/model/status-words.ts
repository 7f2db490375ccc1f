import { isFinalPhase, type TaskPhase } from '@corral/protocol'

/** How a phase is said to people, with a tone that has a colour and a shape. */
export type Tone = 'attention' | 'working' | 'waiting' | 'good' | 'bad' | 'quiet'

const phases: Readonly<Record<string, { word: string; tone: Tone }>> = {
  DRAFT: { word: 'Draft', tone: 'quiet' },
  QUEUED: { word: 'Queued', tone: 'waiting' },
  PROVISIONING: { word: 'Preparing', tone: 'working' },
  RUNNING: { word: 'Working', tone: 'working' },
  WAITING_APPROVAL: { word: 'Plan ready', tone: 'attention' },
  WAITING_INPUT: { word: 'Has a question', tone: 'attention' },
  SUCCEEDED: { word: 'Done', tone: 'good' },
  FAILED: { word: 'Failed', tone: 'bad' },
  TIMED_OUT: { word: 'Timed out', tone: 'bad' },
  CANCELLED: { word: 'Cancelled', tone: 'quiet' },
}

export function statusWord(status: string): { word: string; tone: Tone } {
  return phases[status] ?? { word: status.toLowerCase().replaceAll('_', ' '), tone: 'quiet' }
}

export const hasEnded = (status: string): boolean => isFinalPhase(status as TaskPhase)

/** `shop` of `/home/me/shop`, `git@host:team/shop.git` and `https://host/team/shop`. */
export function repositoryName(repo: string): string {
  const path = repo.replace(/[/\\]+$/, '').replace(/\.git$/, '')
  return /([^/:\\]+)$/.exec(path)?.[1] ?? repo
}

const stages: Readonly<Record<string, string>> = {
  claim: 'Claim',
  sandbox: 'Sandbox',
  repository: 'Repository',
  setup: 'Set-up',
  agent: 'Agent',
  checks: 'Checks',
  result: 'Result',
  push: 'Push',
  cleanup: 'Clean-up',
}

export const stageWord = (stage: string): string => stages[stage] ?? stage

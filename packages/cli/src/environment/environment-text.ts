import { dump } from 'js-yaml'
import type { DetectedSetup } from './detect-setup.js'

/** What a new environment file is made from. */
export interface EnvironmentSource {
  detected: readonly DetectedSetup[]
  /** A file of another tool that says it instead. */
  foreign?: {
    source: string
    setup: string | undefined
    env: Readonly<Record<string, string>>
    tools: Readonly<Record<string, string>>
    start: readonly string[]
  }
  /** Version files that are read as they are. */
  versionFiles: readonly string[]
}

/** The text of an environment file that does this. Pure. */
export function environmentFileText({ detected, foreign, versionFiles }: EnvironmentSource): string {
  const path = foreign ? [] : detected.flatMap(({ path: entry }) => (entry ? [`  - ${entry}`] : []))
  return [
    '# What this repository needs to be worked on by an agent: docs/environments.md of Corral.',
    'version: 1',
    ...(foreign ? fromForeign(foreign) : fromDetected(detected)),
    ...(path.length > 0 ? ['path:', ...path] : []),
    ...(foreign ? [] : toolsOf(detected)),
    ...(foreign ? [] : checksOf(detected)),
    ...(versionFiles.length > 0 ? [`# tools: versions come from ${versionFiles.join(', ')}`] : []),
    'egress:',
    '  setup: [packages]',
    '  agent: []',
    '',
  ].join('\n')
}

function fromDetected(detected: readonly DetectedSetup[]): string[] {
  const lines = detected.flatMap(({ because, setup }) => [`  # ${because}`, ...setup.map((line) => `  - ${line}`)])
  return lines.length > 0 ? ['setup:', ...lines] : []
}

function toolsOf(detected: readonly DetectedSetup[]): string[] {
  const tools = Object.assign({}, ...detected.map((each) => each.tools))
  return Object.keys(tools).length > 0 ? dump({ tools }).trimEnd().split('\n') : []
}

function checksOf(detected: readonly DetectedSetup[]): string[] {
  const checks = detected.flatMap(({ check }) => (check ? [check] : []))
  if (checks.length === 0) return []
  const lines = dump(checks).trimEnd().split('\n')
  return ['checks: # judge the work after the agent; what fails goes back to it', ...lines.map((line) => `  ${line}`)]
}

function fromForeign({ source, setup, env, tools, start }: NonNullable<EnvironmentSource['foreign']>): string[] {
  const content = {
    ...(setup ? { setup } : {}),
    ...(Object.keys(env).length > 0 ? { env } : {}),
    ...(Object.keys(tools).length > 0 ? { tools } : {}),
    ...(start.length > 0 ? { start: start.map((run) => ({ run })) } : {}),
  }
  return [`# from ${source}`, ...(Object.keys(content).length > 0 ? dump(content).trimEnd().split('\n') : [])]
}

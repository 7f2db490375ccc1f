import { dump } from 'js-yaml'
import type { DetectedPart } from './detect-parts.js'
import type { DetectedSetup } from './detect-setup.js'

/** What a new environment file is made from. */
export interface EnvironmentSource {
  detected: readonly DetectedSetup[]
  /** Of a monorepo whose root says nothing. */
  parts?: readonly DetectedPart[]
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
export function environmentFileText({ detected, foreign, parts = [], versionFiles }: EnvironmentSource): string {
  const path = foreign ? [] : [...entriesOf(detected), ...parts.flatMap((part) => entriesOf(part.detected, part.path))]
  return [
    '# What this repository needs to be worked on by an agent: docs/environments.md of Corral.',
    'version: 1',
    ...(foreign ? fromForeign(foreign) : fromDetected(detected)),
    ...(path.length > 0 ? ['path:', ...path.map((entry) => `  - ${entry}`)] : []),
    ...(foreign ? [] : toolsOf(detected)),
    ...(foreign ? [] : checksOf(detected)),
    ...(foreign ? [] : partsOf(parts)),
    ...(versionFiles.length > 0 ? [`# tools: versions come from ${versionFiles.join(', ')}`] : []),
    'egress:',
    '  setup: [packages]',
    '  agent: []',
    '',
  ].join('\n')
}

function fromDetected(detected: readonly DetectedSetup[]): string[] {
  const lines = detected.flatMap(({ because, setup, ahead }) => [
    ...(setup.length > 0 ? [`  # ${because}`, ...setup.map((line) => `  - ${scalar(line)}`)] : []),
    ...(ahead ? ['  # compiled for the tasks to come, as far as it compiles', `  - ${scalar(compiling(ahead))}`] : []),
  ])
  return lines.length > 0 ? ['setup:', ...lines] : []
}

/** In quotes where YAML would read it as something else. */
const scalar = (text: string): string => dump(text, { lineWidth: -1 }).trimEnd()

/** What is broken, or takes long, is for the task to find out: without it all there is to install has been installed. */
function compiling(command: string): string {
  return `timeout 10m ${command} || true`
}

function entriesOf(detected: readonly DetectedSetup[], within?: string): string[] {
  return detected.flatMap(({ path }) => (path ? [within ? `${within}/${path}` : path] : []))
}

function partsOf(parts: readonly DetectedPart[]): string[] {
  if (parts.length === 0) return []
  const content = parts.map(({ name, path, detected }) => {
    const setup = detected.flatMap((each) => [...each.setup, ...(each.ahead ? [compiling(each.ahead)] : [])])
    const tools = Object.assign({}, ...detected.map((each) => each.tools))
    const checks = detected.flatMap(({ check }) => (check ? [check] : []))
    return [
      name,
      {
        path,
        ...(setup.length > 0 ? { setup } : {}),
        ...(Object.keys(tools).length > 0 ? { tools } : {}),
        ...(checks.length > 0 ? { checks } : {}),
      },
    ] as const
  })
  const [, ...lines] = dump({ parts: Object.fromEntries(content) }, { lineWidth: -1, noRefs: true })
    .trimEnd()
    .split('\n')
  return ['parts: # a task names one: --part', ...lines]
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

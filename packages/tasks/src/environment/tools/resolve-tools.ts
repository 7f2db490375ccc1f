import { type TaskWarning, type ToolName, taskWarning } from '@corral/protocol'
import type { WantedTool } from './wanted-tools.js'

/** A toolchain a sandbox has. */
export interface FoundTool {
  name: ToolName
  version: string
  /** Its directory of programs; empty where PATH has it. */
  bin: string
}

export interface ResolvedTool extends FoundTool {
  wantedBy: string
  env?: Record<string, string>
}

export interface Resolution {
  tools: ResolvedTool[]
  warnings: TaskWarning[]
  /** What the environment file asks for and nothing can give; the first of it. */
  missing: { message: string; hint: string } | undefined
}

/** Which of the found toolchains a task uses. What PATH has anyway is preferred: it is what people on this machine use. Pure. */
export function resolveTools(wanted: readonly WantedTool[], found: readonly FoundTool[]): Resolution {
  const resolution: Resolution = { tools: [], warnings: [], missing: undefined }
  for (const want of wanted) {
    const candidates = found.filter(({ name }) => name === want.name)
    const exact = best(candidates.filter(({ version }) => fits(version, want)))
    // A version file that names one patch release is content with its neighbour; an environment file is not.
    const near = want.isRequired ? undefined : best(candidates.filter(({ version }) => isNear(version, want)))
    const tool = exact ?? near
    if (tool) resolution.tools.push({ ...tool, wantedBy: want.wantedBy, ...variablesOf(tool) })
    if (exact) continue
    const message = missingWords(want, candidates)
    if (near)
      resolution.warnings.push(
        taskWarning('ToolDiffers', {
          detail: `${want.name} ${want.version} wanted by ${want.wantedBy}; ${near.version} is used`,
        }),
      )
    else if (want.isRequired) resolution.missing ??= { message, hint: `Add with: ${addCommand(want)}` }
    else resolution.warnings.push(taskWarning('ToolMissing', { detail: `${message}. Add with: ${addCommand(want)}` }))
  }
  return resolution
}

/** The sentence of an event that says which tools a task uses. */
export function toolsSentence(tools: readonly ResolvedTool[]): string {
  return tools
    .map(({ name, version, wantedBy, bin }) => `${name} ${version}${bin === '' ? ' of the machine' : ''} (${wantedBy})`)
    .join(', ')
}

export function missingWords({ name, version, wantedBy }: WantedTool, there: readonly FoundTool[]): string {
  const has = there.length === 0 ? 'none' : [...new Set(there.map((tool) => tool.version))].join(', ')
  return `${name}${version === '' ? '' : ` ${version}`} wanted by ${wantedBy}; this node has ${has}`
}

/** What adds it: toolchains that registries publish are fetched, others come from this machine. */
export function addCommand({ name, version }: Pick<WantedTool, 'name' | 'version'>): string {
  const isFetched = name === 'go' || name === 'node' || name === 'uv'
  if (isFetched) return `corral env tools install ${name}${version === '' ? '' : `@${version}`}`
  return `corral env tools --add ${name}${version === '' ? '' : `@${version}`}`
}

function fits(version: string, { version: wanted, isMinimum }: WantedTool): boolean {
  if (wanted === '') return true
  if (wanted === 'stable') return !/[a-z]/.test(version)
  if (wanted === 'nightly') return version.includes('nightly')
  if (/[a-z]/.test(version)) return version === wanted
  return isMinimum ? compareVersions(version, wanted) >= 0 : isFront(wanted, version)
}

/** The same release line: for Node and Java their first number, for others the first two. */
function isNear(version: string, { name, version: wanted, isMinimum }: WantedTool): boolean {
  if (isMinimum || /[a-z]/.test(wanted) || /[a-z]/.test(version)) return false
  const length = name === 'node' || name === 'java' ? 1 : 2
  const line = wanted.split('.').slice(0, length)
  return line.length === length && isFront(line.join('.'), version)
}

const isFront = (front: string, version: string): boolean => version === front || version.startsWith(`${front}.`)

/** What PATH has, else the newest. */
function best(tools: readonly FoundTool[]): FoundTool | undefined {
  return (
    tools.find(({ bin }) => bin === '') ??
    [...tools].sort((a, b) => compareVersions(b.version, a.version) || (a.bin < b.bin ? -1 : 1))[0]
  )
}

export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((text) => text.split(/[.+-]/).map((part) => Number.parseInt(part, 10) || 0))
  for (let i = 0; i < Math.max(left?.length ?? 0, right?.length ?? 0); i++) {
    const difference = (left?.[i] ?? 0) - (right?.[i] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

/** Without GOTOOLCHAIN Go would fetch another toolchain than the one that was chosen, or fail where it has no network. */
function variablesOf({ name, bin }: FoundTool): { env?: Record<string, string> } {
  if (name === 'go') return { env: { GOTOOLCHAIN: 'local' } }
  if (bin === '') return {}
  return name === 'java' ? { env: { JAVA_HOME: bin.replace(/\/bin$/, '') } } : {}
}

import type { ToolName } from '@corral/protocol'
import { load, YAMLException } from 'js-yaml'
import { type Fields, ForeignFileProblem, type ForeignSetup, inDirectory, isFields, nothing } from './foreign-file.js'

const jobName = 'copilot-setup-steps'

/** Actions whose only effect is a tool of a version. */
const toolActions: Readonly<Record<string, { tool: ToolName; version: string; file: string }>> = {
  'actions/setup-node': { tool: 'node', version: 'node-version', file: 'node-version-file' },
  'actions/setup-python': { tool: 'python', version: 'python-version', file: 'python-version-file' },
  'actions/setup-go': { tool: 'go', version: 'go-version', file: 'go-version-file' },
  'actions/setup-java': { tool: 'java', version: 'java-version', file: 'java-version-file' },
}

/** What they keep between runs is kept in the snapshot. */
const notNeeded = [
  ...['actions/cache', 'actions/cache/restore', 'actions/cache/save', 'Swatinem/rust-cache'],
  ...['hendrikmuhs/ccache-action', 'ggml-org/ccache-action'],
]

interface Installer {
  /** The option that names its version. */
  version: string
  take(version: string | undefined, found: ForeignSetup, uses: string, place: string): void
}

/** A release as package registries name it; anything else is left to the newest. */
const release = (version: string | undefined): string | undefined => /^v?(\d+(?:\.\d+)*)/.exec(version ?? '')?.[1]

/** Actions that put one program in place which no toolchain of the runner has. */
const installers: Readonly<Record<string, Installer>> = {
  'astral-sh/setup-uv': {
    version: 'version',
    take: (version, found) => {
      found.setup.push(`pip install uv${pinned(release(version))}`)
    },
  },
  'pnpm/action-setup': {
    version: 'version',
    // Without a version it is the one that package.json names.
    take: (version, found) => {
      found.setup.push(`npm install --global --prefix ~/.local pnpm@${release(version) ?? namedPnpm}`)
    },
  },
  'oven-sh/setup-bun': {
    version: 'bun-version',
    take: (version, found) => {
      found.setup.push(`npm install --global --prefix ~/.local bun@${release(version) ?? 'latest'}`)
    },
  },
  'dtolnay/rust-toolchain': {
    version: 'toolchain',
    take: (version, found, uses, place) => {
      const asked = version ?? uses.split('@')[1] ?? ''
      // A commit of the action, or its version, names no toolchain.
      const isOfAction = version === undefined && /^([0-9a-f]{40}|master|v\d+)$/.test(asked)
      if (!isOfAction && !/^(stable|nightly|\d+(\.\d+)*)$/.test(asked))
        throw new ForeignFileProblem(`${place} asks for Rust ${asked}; stable, nightly or a release is supported`)
      found.tools.rust = isOfAction ? 'stable' : asked
    },
  },
}

/** One release, or all that begin so. */
function pinned(version: string | undefined): string {
  if (version === undefined) return ''
  return version.split('.').length > 2 ? `==${version}` : `'==${version}.*'`
}

const namedPnpm =
  "$(node -p \"/^pnpm@([0-9][0-9.]*)/.exec(require('./package.json').packageManager ?? '')?.[1] ?? 'latest'\")"

/** Fields of a job that say where and how long it runs, which the platform decides. */
const harmlessJobFields = ['runs-on', 'permissions', 'timeout-minutes', 'steps', 'env', 'name', 'defaults']
const harmlessStepFields = ['name', 'id', 'uses', 'with', 'run', 'env', 'working-directory', 'shell', 'timeout-minutes']

/** The steps of the one job: commands and versions of tools. A step that means anything else is named, and nothing is used. */
export function readCopilotSetupSteps(text: string): ForeignSetup {
  const { workflow, job } = jobOf(text)
  for (const field of Object.keys(job))
    if (!harmlessJobFields.includes(field)) throw new ForeignFileProblem(`jobs.${jobName}.${field} is not supported`)
  if (!Array.isArray(job.steps)) throw new ForeignFileProblem(`jobs.${jobName}.steps must be a list`)
  const found = nothing()
  found.env = { ...literals(workflow.env, 'env'), ...literals(job.env, `jobs.${jobName}.env`) }
  const defaults = { ...runDefaults(workflow, 'defaults'), ...runDefaults(job, `jobs.${jobName}.defaults`) }
  for (const [index, step] of job.steps.entries()) {
    const place = `jobs.${jobName}.steps[${index}]`
    if (!isFields(step)) throw new ForeignFileProblem(`${place} must be an object`)
    takeStep({ ...(step.run === undefined ? {} : defaults), ...step }, place, found)
  }
  return found
}

/** `working-directory` and `shell` of steps that name none; they count for `run` alone. */
function runDefaults({ defaults }: Fields, place: string): Fields {
  if (defaults === undefined) return {}
  const fields = isFields(defaults) ? defaults : {}
  const run = isFields(fields.run) ? fields.run : {}
  const other = Object.keys(run).find((field) => field !== 'working-directory' && field !== 'shell')
  if (!isFields(fields.run) || other)
    throw new ForeignFileProblem(`${place}${other ? `.run.${other}` : ''} is not supported`)
  return run
}

function jobOf(text: string): { workflow: Fields; job: Fields } {
  let file: unknown
  try {
    file = load(text)
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    throw new ForeignFileProblem(`line ${(error.mark?.line ?? 0) + 1}: ${error.reason}`, { cause: error })
  }
  const workflow = isFields(file) ? file : {}
  const job = isFields(workflow.jobs) ? workflow.jobs[jobName] : undefined
  if (!isFields(job)) throw new ForeignFileProblem(`there is no job ${jobName}`)
  return { workflow, job }
}

function takeStep(step: Fields, place: string, found: ForeignSetup): void {
  for (const field of Object.keys(step))
    if (!harmlessStepFields.includes(field)) throw new ForeignFileProblem(`${place}.${field} is not supported`)
  if (typeof step.uses === 'string') {
    takeAction(step.uses, step.with, place, found)
    return
  }
  if (typeof step.run !== 'string') throw new ForeignFileProblem(`${place} has neither run nor uses`)
  const { shell } = step
  if (shell !== undefined && shell !== 'bash' && shell !== 'sh')
    throw new ForeignFileProblem(`${place}.shell is ${String(shell)}; bash and sh are supported`)
  refuseExpression(step.run, `${place}.run`)
  const [file] = /\bGITHUB_(ENV|PATH|OUTPUT|STATE)\b/.exec(step.run) ?? []
  // Later steps would find what it writes there; without the file the script would end with an unbound variable.
  if (file) throw new ForeignFileProblem(`${place}.run writes to ${file}, which is not supported`)
  const env = Object.entries(literals(step.env, `${place}.env`))
  const exports = env.map(([name, value]) => `export ${name}='${value.replaceAll("'", `'\\''`)}'\n`).join('')
  const directory = step['working-directory']
  if (typeof directory === 'string') refuseExpression(directory, `${place}.working-directory`)
  found.setup.push(inDirectory(typeof directory === 'string' ? directory : undefined, exports + step.run.trimEnd()))
}

function takeAction(uses: string, given: unknown, place: string, found: ForeignSetup): void {
  const [action = ''] = uses.split('@')
  if (action === 'actions/checkout') {
    // The repository is there already. Another one, or another place, is what later steps look for in vain.
    const other = ['repository', 'path'].find((field) => isFields(given) && given[field] !== undefined)
    if (other) throw new ForeignFileProblem(`${place}.with.${other} is not supported`)
    return
  }
  if (notNeeded.includes(action)) return
  const installed = Object.hasOwn(installers, action) ? installers[action] : undefined
  if (installed) {
    const options = isFields(given) ? given : {}
    const { [installed.version]: version, 'python-version': python } = options
    if (version !== undefined) refuseExpression(String(version), `${place}.with.${installed.version}`)
    installed.take(version === undefined ? undefined : String(version).trim(), found, uses, place)
    if (python !== undefined) takeAction('actions/setup-python', { 'python-version': python }, place, found)
    return
  }
  const known = Object.hasOwn(toolActions, action) ? toolActions[action] : undefined
  if (!known) throw new ForeignFileProblem(`${place} uses ${uses}, which is not supported`)
  const options = isFields(given) ? given : {}
  const version = options[known.version]
  // Version files of the repository are read anyway.
  if (version === undefined) return
  const text = String(version).trim()
  refuseExpression(text, `${place}.with.${known.version}`)
  const [plain] = /^\d+(\.\d+)*(?=(\.x)*$)/.exec(text.replace(/^v/, '')) ?? []
  if (plain !== undefined) found.tools[known.tool] = plain
  else if (!/^(lts\/\*|latest|current|node|stable|oldstable)$/.test(text))
    throw new ForeignFileProblem(`${place}.with.${known.version} is ${text}; one version such as 22 is supported`)
}

function literals(value: unknown, place: string): Record<string, string> {
  if (!isFields(value)) return {}
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => {
      refuseExpression(String(each), `${place}.${name}`)
      return [name, String(each)]
    }),
  )
}

/** Expressions may hold secrets and facts of a run that does not exist here. */
function refuseExpression(text: string, place: string): void {
  const [expression] = /\$\{\{.*?\}\}/s.exec(text) ?? []
  if (expression) throw new ForeignFileProblem(`${place} has the expression ${expression}, which is not supported`)
}

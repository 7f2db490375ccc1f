import type { EnvironmentRequest } from '@corral/protocol'
import { packagesGrant } from '@corral/resources'
import { TaskError } from '../../task-error.js'
import { readCopilotSetupSteps } from './copilot-setup-steps.js'
import { readCursorEnvironment, readDevcontainer } from './editor-files.js'
import { ForeignFileProblem, type ForeignSetup, inOwnShells, nothing } from './foreign-file.js'

const readers: Readonly<Record<string, (text: string) => ForeignSetup>> = {
  '.github/workflows/copilot-setup-steps.yml': readCopilotSetupSteps,
  '.github/workflows/copilot-setup-steps.yaml': readCopilotSetupSteps,
  '.cursor/environment.json': readCursorEnvironment,
  '.devcontainer/devcontainer.json': readDevcontainer,
  '.devcontainer.json': readDevcontainer,
  // Run with bash, which it is written for; it may not be executable.
  '.openhands/setup.sh': () => ({ ...nothing(), setup: ['bash .openhands/setup.sh'] }),
}

/** Files of other tools that say how a repository is set up; the first that is there counts. */
export const foreignFiles: readonly string[] = Object.keys(readers)

export interface ForeignEnvironment {
  source: string
  request: EnvironmentRequest
  /** Parts of the file that were not used. */
  leftOut: string[]
}

/**
 * What the first of these files gives a task: commands, variables, tools. It never gets network beyond the package mirror,
 * secrets or anything else that has to be granted. Pure; `EnvironmentInvalid` names what cannot be used.
 */
export function readForeignEnvironment(
  files: readonly { path: string; text: string }[],
): ForeignEnvironment | undefined {
  const file = foreignFiles.flatMap((path) => files.filter((each) => each.path === path))[0]
  if (!file) return undefined
  try {
    const { setup, env, tools, start, leftOut } = readers[file.path]?.(file.text) ?? nothing()
    return {
      source: file.path,
      leftOut,
      request: {
        ...(setup.length > 0 ? { setup: inOwnShells(setup) } : {}),
        env,
        path: [],
        checks: [],
        egress: { setup: setup.length > 0 ? [packagesGrant] : [], agent: [] },
        tools,
        start: start.map((run, index) => ({ name: `start-${index + 1}`, run, timeoutSeconds: 60, env: {} })),
        services: [],
        secrets: [],
        parts: [],
      },
    }
  } catch (error) {
    if (!(error instanceof ForeignFileProblem)) throw error
    throw new TaskError('EnvironmentInvalid', `${file.path}: ${error.message}`, {
      cause: error,
      hint: 'Write .corral/environment.yaml, which then counts instead (`corral env init` does, where there are lock files), or name a command with --setup.',
    })
  }
}

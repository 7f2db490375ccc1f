import { type Git, GitError, type GitOptions, runGit } from './git-process.js'
import { secretsOfRewrites, withoutSecrets } from './rewritten-addresses.js'

export { type Git, GitError, type GitOptions, lastLines } from './git-process.js'

/**
 * Variables that tie git to one repository: set where the platform was started, they would be about another one. And
 * those that trace to standard error, which becomes part of error messages, headers with secrets included.
 */
const droppedVariables = new Set([
  'GIT_ALTERNATE_OBJECT_DIRECTORIES',
  'GIT_CEILING_DIRECTORIES',
  'GIT_COMMON_DIR',
  'GIT_CONFIG',
  'GIT_CONFIG_COUNT',
  'GIT_CONFIG_PARAMETERS',
  'GIT_CURL_VERBOSE',
  'GIT_DEFAULT_HASH',
  'GIT_DEFAULT_REF_FORMAT',
  'GIT_DIR',
  'GIT_EXTERNAL_DIFF',
  'GIT_GRAFT_FILE',
  'GIT_INDEX_FILE',
  'GIT_NAMESPACE',
  'GIT_OBJECT_DIRECTORY',
  'GIT_PREFIX',
  'GIT_REPLACE_REF_BASE',
  'GIT_SHALLOW_FILE',
  'GIT_TEMPLATE_DIR',
  'GIT_TRACE',
  'GIT_TRACE_CURL',
  'GIT_TRACE_PACKET',
  'GIT_TRACE_REDACT',
  'GIT_WORK_TREE',
])

/**
 * A git whose environment never prompts and runs nothing of the repositories it touches. `globalConfig` is a file that
 * includes the user's own configuration, so the user's credential helpers and ssh settings apply.
 */
export function createGit(base: { globalConfig: string; env: Readonly<Record<string, string | undefined>> }): Git {
  const kept = Object.entries(base.env).filter(([name]) => !droppedVariables.has(name))
  const env = {
    ...Object.fromEntries(kept),
    GIT_CONFIG_GLOBAL: base.globalConfig,
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: base.env.GIT_ASKPASS ?? '',
    LC_ALL: 'C',
  }
  const run = (args: readonly string[], options: GitOptions = {}) =>
    runGit(['git', ...safeOptions, ...args], args, { ...options, env: { ...definedOnly(env), ...options.env } })
  return async (args, options) => {
    try {
      return await run(args, options)
    } catch (error) {
      if (!(error instanceof GitError) || !remoteCommands.has(args[0] ?? '')) throw error
      throw withoutSecrets(error, await secretsOfRewrites(run, options?.cwd))
    }
  }
}

/** Commands that speak to another machine, under the address that the user's configuration makes of the given one. */
const remoteCommands = new Set(['fetch', 'ls-remote', 'push'])

const safeOptions = ['-c', 'core.hooksPath=/dev/null', '-c', 'protocol.ext.allow=never', '-c', 'gc.auto=0']

function definedOnly(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined))
}

import type { AgentTask } from '@corral/resources'

/** The directories the environment puts first on PATH, as absolute paths in the sandbox; empty for none. */
export function pathEntries(task: Pick<AgentTask, 'status'>, repository: string): string {
  const { path = [], tools = [] } = task.status?.environment ?? {}
  const chosen = tools.flatMap(({ bin }) => (bin === '' ? [] : [bin]))
  return [...path.map((entry) => `${repository}/${entry}`), ...new Set(chosen)].join(':')
}

/** The variables of the environment: those its toolchains need, and its own, which win. */
export function environmentVariables(task: Pick<AgentTask, 'status'>): Record<string, string> {
  const { env, tools = [] } = task.status?.environment ?? {}
  return { ...Object.assign({}, ...tools.map((tool) => tool.env ?? {})), ...env }
}

/** The command with these directories first on its PATH. */
export function withPath(argv: readonly string[], entries: string): { argv: string[]; env: Record<string, string> } {
  if (entries === '') return { argv: [...argv], env: {} }
  const script = 'PATH="$CORRAL_PATH:$PATH"; export PATH; unset CORRAL_PATH; exec "$@"'
  return { argv: ['/bin/sh', '-c', script, 'sh', ...argv], env: { CORRAL_PATH: entries } }
}

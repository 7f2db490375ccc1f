import type { DaemonClient } from '@corral/protocol'
import type { AgentTaskStatus } from '@corral/resources'
import type { PreparedRepository } from '../../repository/repository.js'
import { runCommand } from '../../sandbox/run-command.js'
import type { SandboxContext } from '../sandbox-context.js'
import { type EnvironmentKey, environmentKey, keyFileRule, type SandboxFacts } from './environment-key.js'

const factsScript = `uname -m
if [ -r /etc/os-release ]; then . /etc/os-release; fi
echo "\${ID:-unknown} \${VERSION_ID:-} \${CORRAL_ROOT_DIGEST:-}"
`

/** The key of an environment in this sandbox, for the commit that is checked out in it. */
export async function keyInSandbox(
  context: Pick<SandboxContext, 'task' | 'findWorkspace' | 'environments' | 'signal'>,
  daemon: DaemonClient,
  environment: NonNullable<AgentTaskStatus['environment']>,
  prepared: Pick<PreparedRepository, 'findFiles'>,
  named: readonly string[] | undefined,
): Promise<EnvironmentKey> {
  const { setup = '', source = '' } = environment
  // One waits for the sandbox, the other for git on this machine.
  const [facts, files] = await Promise.all([
    sandboxFacts(context, daemon),
    prepared.findFiles(keyFileRule({ named, setup, source })),
  ])
  return environmentKey(environment, facts, files)
}

async function sandboxFacts(
  {
    task,
    findWorkspace,
    environments,
    signal,
  }: Pick<SandboxContext, 'task' | 'findWorkspace' | 'environments' | 'signal'>,
  daemon: DaemonClient,
): Promise<SandboxFacts> {
  const { stdout } = await runCommand(
    daemon,
    `${task.metadata.uid}.facts`,
    { argv: ['/bin/sh', '-c', factsScript], keep: 'memory' },
    { signal, isRepeatable: true, timeoutMs: 60_000 },
  )
  const [architecture = '', root = ''] = stdout.trim().split('\n')
  const { home, repository } = await findWorkspace()
  const outside = (await environments?.rootOf(task)) ?? ''
  return { architecture, root: [root.trim(), outside].filter(Boolean).join(' '), home, repository }
}

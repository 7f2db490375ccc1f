import type { EnvironmentView } from '@corral/protocol'
import { CliError } from '../cli-error.js'
import type { requirePlatform } from '../client/find-platform.js'
import { attachTerminal } from '../client/terminal.js'
import { readLocalEnvironment } from '../environment/local-environment.js'
import type { CommonOptions } from './common.js'
import { isLocal } from './env-ref.js'
import { enterRepository, loginShell } from './task-shell.js'

const dayMs = 24 * 60 * 60_000

/** A terminal in the newest snapshot of an environment, or in the sandbox of its last build, which failed. */
export async function environmentShell(
  platform: Awaited<ReturnType<typeof requirePlatform>>,
  environment: EnvironmentView,
  options: CommonOptions & { namespace: string; failed?: boolean },
): Promise<void> {
  const { sandboxClient } = await import('../client/kube-access.js')
  const kubeconfig = platform.kubeconfig ? { kubeconfig: platform.kubeconfig } : {}
  await using client = await sandboxClient({ ...options, ...kubeconfig })
  const tty = process.stdin.isTTY === true && process.stdout.isTTY === true
  const open = async (name: string, command: string[]): Promise<void> => {
    const process_ = await client.sandboxes.execStream({ name }, command, { stdin: true, tty })
    process.exitCode = await attachTerminal(process_, { tty, stdin: true })
  }
  const variables = await declaredVariables(environment)
  if (options.failed) {
    const name = environment.build?.state === 'Failed' ? environment.build.sandbox : undefined
    if (!name || !(await client.sandboxes.objects.find(name)))
      throw new CliError('there is no sandbox of a build that failed', {
        hint: `It is kept for a quarter of an hour. Build again: corral env build ${environment.name}`,
      })
    // The client is closed when this returns.
    await open(name, shellIn(variables, enterRepository))
    return
  }
  const [newest] = environment.snapshots
  if (!newest)
    throw new CliError(`${environment.name} has nothing built`, { hint: 'Build it with `corral env build`.' })
  const { snapshotAnnotation } = await import('@corral/resources')
  await using sandbox = await client.sandboxes.create({
    pool: 'default',
    podAnnotations: { [snapshotAnnotation]: newest.name },
    ttlMs: dayMs,
  })
  const attached = 'i=0; until [ -d /workspace/repo ] || [ $i = 200 ]; do sleep 0.05; i=$((i+1)); done'
  await open(sandbox.name, shellIn(variables, `${attached}; ${enterRepository}`))
}

/** Directories of the repository for PATH; taken off again before the shell starts. */
const pathVariable = 'CORRAL_PATH'

function shellIn(variables: readonly string[], enter: string): string[] {
  const withPath = `IFS=:; for each in \${${pathVariable}:-}; do PATH=$PWD/$each:$PATH; done; unset IFS ${pathVariable}; export PATH; exec "$@"`
  return ['/usr/bin/env', ...variables, '/bin/sh', '-c', enter, 'sh', '/bin/sh', '-c', withPath, 'sh', ...loginShell]
}

/** `NAME=value` of its file, where that is on this machine. One that cannot be read does not keep the shell from opening. */
async function declaredVariables({ repo, part }: EnvironmentView): Promise<string[]> {
  const found = isLocal(repo) ? await readLocalEnvironment(repo, part).catch(() => undefined) : undefined
  if (!found) return []
  const { env, path } = found.request
  const entries = path.toReversed().join(':')
  return [
    ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
    ...(entries ? [`${pathVariable}=${entries}`] : []),
  ]
}

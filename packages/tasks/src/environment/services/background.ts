import { setTimeout } from 'node:timers/promises'
import { anySignal, clipText, type DaemonClient } from '@corral/protocol'
import { runCommand } from '../../sandbox/run-command.js'
import { TaskError } from '../../task-error.js'
import { missingProgramHint } from '../missing-program.js'
import { environmentVariables, pathEntries } from '../path-entries.js'
import type { SandboxContext } from '../sandbox-context.js'
import type { RunnableService } from './ready-made.js'

const runScript = `if [ -n "\${CORRAL_PATH:-}" ]; then PATH=$CORRAL_PATH:$PATH; export PATH; fi
unset CORRAL_PATH
if command -v bash > /dev/null; then exec bash -c "$CORRAL_RUN"; else exec /bin/sh -c "$CORRAL_RUN"; fi
`

/**
 * In: PORT READY (a command; empty for none). Ends once something listens on the port. The kernel's table is read: to connect
 * would be a client the service has to deal with.
 */
const readyScript = `hex=$(printf %04X "$PORT")
until grep -qE "^ *[0-9]+: [0-9A-F]+:$hex [0-9A-F:]+ 0A " /proc/net/tcp /proc/net/tcp6 2> /dev/null; do sleep 0.1; done
if [ -n "$READY" ]; then until eval "$READY"; do sleep 0.1; done; fi
`

const lookEveryMs = 250
const maxRuns = 3
const endMs = 15_000

/**
 * Starts commands that run beside the work, one after the other, each ready before the next. Safe to repeat: what runs is
 * joined; what a restart of the sandbox has ended is started again. Throws `ServiceFailed`.
 */
export async function startBackground(
  daemon: DaemonClient,
  context: SandboxContext,
  services: readonly RunnableService[],
): Promise<void> {
  for (const service of services) await startOne(daemon, context, service)
}

async function startOne(daemon: DaemonClient, context: SandboxContext, service: RunnableService): Promise<void> {
  const { task, signal, eventLog } = context
  const { repository } = await context.findWorkspace()
  const id = await freeId(daemon, `${task.metadata.uid}.background-${service.name}`, signal)
  const isNew = !(await daemon.findProcess(id, { signal }))
  const request = {
    argv: ['/bin/sh', '-c', runScript],
    cwd: repository,
    env: {
      ...environmentVariables(task),
      ...service.env,
      CORRAL_RUN: service.run,
      CORRAL_PATH: pathEntries(task, repository),
      CORRAL_TASK_ID: task.metadata.name,
    },
  }
  await daemon.startProcess(id, request, { signal })
  if (service.port !== undefined) await waitReady(daemon, context, { ...service, port: service.port }, id)
  const detail = `${service.name} ${service.port === undefined ? 'started' : `is ready on port ${service.port}`}`
  if (isNew) await eventLog.append(task.metadata.uid, [{ type: 'stage', stage: 'setup', state: 'progress', detail }])
}

/** Ends them again, each with the time to write down what it has. */
export async function endBackground(
  daemon: DaemonClient,
  { task, signal }: SandboxContext,
  services: readonly Pick<RunnableService, 'name'>[],
): Promise<void> {
  for (const { name } of services) {
    const id = await freeId(daemon, `${task.metadata.uid}.background-${name}`, signal)
    const known = await daemon.findProcess(id, { signal })
    if (!known || known.exit) continue
    await daemon.signal(id, 'SIGTERM', { timeoutMs: 5_000 }).catch(() => undefined)
    const inTime = AbortSignal.timeout(endMs)
    await watchEnd(daemon, id, anySignal([signal, inTime])).catch((error: unknown) => {
      if (!inTime.aborted) throw error // what does not end is ended with its sandbox
    })
  }
}

/** The id of the run that goes on, or of the next one where the sandbox was restarted under the last. */
async function freeId(daemon: DaemonClient, id: string, signal: AbortSignal): Promise<string> {
  for (let run = 1; run < maxRuns; run++) {
    const each = run === 1 ? id : `${id}.${run}`
    const known = await daemon.findProcess(each, { signal })
    if (!known?.exit || known.exit.exit_code >= 0) return each
  }
  return `${id}.${maxRuns}`
}

async function waitReady(
  daemon: DaemonClient,
  context: SandboxContext,
  service: RunnableService & { port: number },
  id: string,
): Promise<void> {
  const { signal } = context
  const over = new AbortController()
  const ended = watchEnd(daemon, id, anySignal([signal, over.signal]))
  const readyId = `${id}.ready`
  const ready = runCommand(
    daemon,
    readyId,
    {
      argv: ['/bin/sh', '-c', readyScript],
      env: { ...service.env, PORT: String(service.port), READY: service.isReady ?? '' },
    },
    {
      signal: anySignal([signal, over.signal]),
      isRepeatable: true,
      timeoutMs: service.timeoutSeconds * 1000,
      timeoutCode: 'ServiceFailed',
    },
  )
  try {
    const first = await Promise.race([ready.then(() => undefined), ended])
    if (first !== undefined) throw await failure(daemon, context, service, id, `ended with exit code ${first}`)
  } catch (error) {
    if (!(error instanceof TaskError) || error.code !== 'ServiceFailed' || error.cause === undefined) throw error
    const late = `did not listen on port ${service.port} within ${service.timeoutSeconds} s`
    throw await failure(daemon, context, service, id, late)
  } finally {
    over.abort()
    await Promise.allSettled([ready, ended])
    // Where it ended first, the wait for the port ends too.
    const waiting = await daemon.findProcess(readyId).catch(() => undefined)
    if (waiting && !waiting.exit) await daemon.signal(readyId, 'SIGKILL', { timeoutMs: 5_000 }).catch(() => undefined)
  }
}

/** The exit code of the process once it has ended; never settles with one before. */
async function watchEnd(daemon: DaemonClient, id: string, signal: AbortSignal): Promise<number | undefined> {
  for (;;) {
    const { exit } = (await daemon.findProcess(id, { signal })) ?? {}
    if (exit) return exit.exit_code
    await setTimeout(lookEveryMs, undefined, { signal })
  }
}

async function failure(
  daemon: DaemonClient,
  { task, signal }: SandboxContext,
  { name }: RunnableService,
  id: string,
  how: string,
): Promise<TaskError> {
  const said = await lastOutput(daemon, id, signal).catch(() => '')
  const isService = (task.status?.environment?.services ?? []).some((service) => service.name === name)
  const hint = missingProgramHint(said, isService ? 'service' : 'set-up')
  return new TaskError('ServiceFailed', `${name} ${how}${said === '' ? '' : `: ${said}`}`, hint ? { hint } : {})
}

/** What is there of its output, without waiting for more. */
async function lastOutput(daemon: DaemonClient, id: string, signal: AbortSignal): Promise<string> {
  let text = ''
  const soon = AbortSignal.timeout(2_000)
  try {
    for await (const event of daemon.readOutput(id, { signal: anySignal([signal, soon]) })) {
      if (event.type === 'exit') break
      if (event.type !== 'gap') text = (text + Buffer.from(event.data).toString('utf8')).slice(-2_000)
    }
  } catch (error) {
    if (!soon.aborted) throw error
  }
  return clipText(text.trim(), 2_000)
}

import { statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Logger } from '@corral/ports'
import type { CradleIsolationOptions } from '../cradle/client/cradle-isolation.js'
import { defaultCradleEntry, defaultSupervisorPath, stageProgram } from '../cradle/client/cradle-process.js'
import type { SupervisorProgram } from '../cradle/protocol/messages.js'
import { IsolationError } from '../isolation/isolation-error.js'

export interface IsolationOptions {
  dataDir: string
  /** The compiled supervisor; looked for beside the package when left out, null to go without. */
  supervisorPath?: string | null
  /** The bundled Node supervisor, used where there is no compiled one. */
  supervisorScript?: string
  nodePath?: string
  cradleEntry?: string
  /** How long cells outlive a main that went away. */
  idleShutdownMs?: number
  log?: Logger
}

const tenMinutesMs = 10 * 60_000

/** What every tier whose cells live in a cradle starts it with. */
export function cradleOptions(
  options: IsolationOptions,
): Pick<CradleIsolationOptions, 'dataDir' | 'nodePath' | 'cradleEntry' | 'supervisor' | 'idleShutdownMs' | 'log'> {
  const nodePath = options.nodePath ?? process.execPath
  return {
    dataDir: options.dataDir,
    nodePath,
    cradleEntry: options.cradleEntry ?? defaultCradleEntry(),
    supervisor: () => findSupervisor(options, nodePath),
    idleShutdownMs: options.idleShutdownMs ?? tenMinutesMs,
    ...(options.log ? { log: options.log } : {}),
  }
}

function findSupervisor(options: IsolationOptions, nodePath: string): SupervisorProgram {
  const compiled = options.supervisorPath === null ? undefined : (options.supervisorPath ?? defaultSupervisorPath())
  if (compiled !== undefined && statSync(compiled, { throwIfNoEntry: false })) {
    return { kind: 'native', path: stageProgram(options.dataDir, compiled) }
  }
  const script = options.supervisorScript ?? fileURLToPath(new URL('./node-supervisor.mjs', import.meta.url))
  if (!statSync(script, { throwIfNoEntry: false })) {
    throw new IsolationError(
      'Unsupported',
      'neither the compiled nor the bundled Node supervisor is here; run the set-up',
    )
  }
  const isSystemNode = nodePath.startsWith('/usr/')
  return {
    kind: 'node',
    nodePath: isSystemNode ? nodePath : stageProgram(options.dataDir, nodePath),
    script: stageProgram(options.dataDir, script),
  }
}

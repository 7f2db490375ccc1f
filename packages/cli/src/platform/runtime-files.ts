import { createHash } from 'node:crypto'
import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CliError } from '../cli-error.js'

/** Programs of ours that run beside or inside sandboxes. */
export interface RuntimeFiles {
  /** Directory with the daemon, readable by every user. */
  directory: string
  daemon: string
  cradle: string
  /** The compiled supervisor, where set-up found a compiler. */
  supervisor: string | undefined
  /** The supervisor in JavaScript, which needs none. */
  supervisorScript: string | undefined
}

/**
 * Copies daemon, cradle and supervisor into the data directory, once per version: what is bound into a sandbox must be
 * reachable by its user, and a running sandbox keeps its files when the installation is replaced.
 */
export function installRuntime(runtimeDirectory: string, bundle: string = bundleDirectory()): RuntimeFiles {
  const scripts = ['daemon.mjs', 'sandboxd.mjs', 'cradle.mjs', 'supervisor.mjs']
  const sources = [...scripts, 'corral-supervisor', 'undumpable.node'].filter((name) => existsSync(join(bundle, name)))
  if (!sources.includes('daemon.mjs') || !sources.includes('cradle.mjs'))
    throw new CliError(`the build in ${bundle} is incomplete`, { hint: 'Run `npm run build`.' })
  const digest = createHash('sha256')
  for (const name of sources) digest.update(name).update(readFileSync(join(bundle, name)))
  const directory = join(runtimeDirectory, digest.digest('hex').slice(0, 16))
  if (!existsSync(directory)) {
    const half = `${directory}.${process.pid}.part`
    rmSync(half, { recursive: true, force: true })
    mkdirSync(half, { recursive: true, mode: 0o755 })
    for (const name of sources) {
      copyFileSync(join(bundle, name), join(half, name))
      chmodSync(join(half, name), 0o755)
    }
    // Terminals need native code, which comes as a package.
    const packages = join(bundle, 'node_modules')
    if (existsSync(packages)) cpSync(packages, join(half, 'node_modules'), { recursive: true })
    renameSync(half, directory)
  }
  const ifThere = (name: string): string | undefined => (sources.includes(name) ? join(directory, name) : undefined)
  return {
    directory,
    daemon: join(directory, 'daemon.mjs'),
    cradle: join(directory, 'cradle.mjs'),
    supervisor: ifThere('corral-supervisor'),
    supervisorScript: ifThere('supervisor.mjs'),
  }
}

/** The files as isolation asks for them. */
export function isolationFiles({ cradle, supervisor, supervisorScript }: RuntimeFiles): {
  cradleEntry: string
  supervisorPath: string | null
  supervisorScript?: string
} {
  return {
    cradleEntry: cradle,
    supervisorPath: supervisor ?? null,
    ...(supervisorScript ? { supervisorScript } : {}),
  }
}

/** The program of the journal's thread, for storage; nothing where it is not built, which costs speed only. */
export function journalThread(): { threadProgram?: string } {
  const threadProgram = join(bundleDirectory(), 'journal.mjs')
  return existsSync(threadProgram) ? { threadProgram } : {}
}

/** The program of the thread that counts what pods take, for the node; nothing where it is not built. */
export function usageThread(): { usageThread?: string } {
  const program = join(bundleDirectory(), 'disk-usage.mjs')
  return existsSync(program) ? { usageThread: program } : {}
}

/** Where the build puts the files of the web interface. */
export function webDirectory(): string {
  return join(bundleDirectory(), 'web')
}

/** Where the bundles lie: beside this file once bundled, below `dist` when run from source. */
export function bundleDirectory(): string {
  const here = dirname(fileURLToPath(import.meta.url))
  const candidates = [here, join(here, '..'), join(here, '..', '..', 'dist', 'bundle')]
  return candidates.find((path) => existsSync(join(path, 'daemon.mjs'))) ?? here
}

import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { sandboxProcesses } from './process-scan.js'
import { runProgram } from './run-program.js'

export interface SecretScan {
  /** Every place that holds the secret: `process environ`, `file tasks/…`, `git mirrors/…`. */
  places: string[]
  /** How much was looked at: a scan that looked at nothing finds nothing. */
  looked: { processes: number; files: number; repositories: number }
}

/**
 * Looks for a secret in everything a platform keeps and runs: environment and command line of the sandboxes' processes,
 * every file of the data directory, every object of every git repository in it. As it is, and in base64. The directory
 * `secrets` is left out: it is where a secret belongs.
 */
export async function scanForSecret(dataDir: string, secret: string): Promise<SecretScan> {
  const needles = [Buffer.from(secret), Buffer.from(Buffer.from(secret).toString('base64').replace(/=+$/, ''))]
  const holds = (bytes: Buffer): boolean => needles.some((needle) => bytes.includes(needle))
  const places: string[] = []
  const looked = { processes: 0, files: 0, repositories: 0 }

  for (const pid of sandboxProcesses(dataDir)) {
    looked.processes += 1
    for (const file of ['environ', 'cmdline'])
      if (holds(readQuietly(`/proc/${pid}/${file}`))) places.push(`process ${file}`)
  }
  for (const path of walk(dataDir, (name) => name !== join(dataDir, 'secrets'))) {
    const info = lstatSync(path, { throwIfNoEntry: false })
    if (!info) continue
    if (info.isDirectory()) {
      if (!existsSync(join(path, 'HEAD')) || !existsSync(join(path, 'objects'))) continue
      looked.repositories += 1
      if (holds(await allObjects(path))) places.push(`git ${relative(dataDir, path)}`)
      continue
    }
    if (!info.isFile()) continue
    looked.files += 1
    if (holds(readQuietly(path))) places.push(`file ${relative(dataDir, path)}`)
  }
  return { places: [...new Set(places)].sort(), looked }
}

/** Objects lie compressed in packs: read as bytes they hide what they hold. */
async function allObjects(repository: string): Promise<Buffer> {
  const { stdout } = await runProgram('git', ['cat-file', '--batch', '--batch-all-objects', '--unordered'], {
    cwd: repository,
    env: {
      PATH: process.env.PATH,
      GIT_DIR: repository,
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'safe.directory',
      GIT_CONFIG_VALUE_0: '*',
    },
  })
  return Buffer.from(stdout)
}

function* walk(directory: string, enters: (path: string) => boolean): Generator<string> {
  let names: string[]
  try {
    names = readdirSync(directory)
  } catch {
    // A sandbox that ends takes its directory along.
    return
  }
  for (const name of names) {
    const path = join(directory, name)
    yield path
    if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() && enters(path)) yield* walk(path, enters)
  }
}

function readQuietly(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch {
    // It ended or went away.
    return Buffer.alloc(0)
  }
}

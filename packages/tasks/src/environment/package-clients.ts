import type { DaemonClient } from '@corral/protocol'
import { runCommand } from '../sandbox/run-command.js'
import { TaskError } from '../task-error.js'
import { type NpmScope, scopesAtMirror } from './npm-scopes.js'

/** What package clients inside a sandbox are given so that they ask the mirror of the platform. */
export interface PackageClients {
  readonly env: Readonly<Record<string, string>>
  /** Files a client cannot do without, by path below the home directory. */
  readonly files: Readonly<Record<string, string>>
  /** Scopes of npm that the mirror asks at a registry of their own. */
  npmScopes?(): Promise<readonly NpmScope[]>
}

/** In: FILE (below HOME) CONTENT. A file that is there is the template's own and stays. */
const writeScript = `set -eu
file=$HOME/$FILE
if [ -e "$file" ]; then exit 0; fi
mkdir -p -- "\${file%/*}"
printf '%s' "$CONTENT" > "$file.new"
mv -- "$file.new" "$file"
`

/**
 * Writes the files of the clients into the sandbox's home directory. They stay for the agent also where it has no mirror:
 * Cargo finds what set-up has fetched only below the registry it was fetched from.
 */
export async function writeClientFiles(
  daemon: DaemonClient,
  clients: PackageClients,
  taskUid: string,
  signal: AbortSignal,
): Promise<void> {
  for (const [index, [file, content]] of Object.entries(clients.files).entries()) {
    const { exit, tail } = await runCommand(
      daemon,
      `${taskUid}.package-client-${index}`,
      { argv: ['/bin/sh', '-c', writeScript], env: { FILE: file, CONTENT: content } },
      { signal, isRepeatable: true, timeoutMs: 60_000 },
    )
    if (exit.exit_code !== 0) throw new TaskError('SetupFailed', `~/${file} could not be written: ${tail}`)
  }
}

const maxNpmrcBytes = 100_000

const maxNpmrcFiles = 50

/** Scopes that set-up asks through the mirror although `.npmrc` files of the project, or of its parts, name their registry. */
export async function mirroredScopes(
  daemon: DaemonClient,
  { npmScopes }: PackageClients,
  { repository, taskUid }: { repository: string; taskUid: string },
  signal: AbortSignal,
): Promise<string[]> {
  if (!npmScopes) return []
  const { stdout } = await runCommand(
    daemon,
    `${taskUid}.npmrc-files`,
    { argv: ['git', '-C', repository, 'ls-files', '-z', '--', '.npmrc', ':(glob)**/.npmrc'] },
    { signal, isRepeatable: true, timeoutMs: 60_000 },
  )
  const files = [...new Set(['.npmrc', ...stdout.split('\0').filter(Boolean)])].slice(0, maxNpmrcFiles)
  const texts = await Promise.all(
    files.map(async (file) => {
      const path = `${repository}/${file}`
      const found = await daemon.statFile(path, { signal })
      if (!found || found.size > maxNpmrcBytes) return ''
      return Buffer.from(await daemon.readFile(path, { signal, maxBytes: maxNpmrcBytes })).toString()
    }),
  )
  return texts.some((text) => text.includes(':registry')) ? scopesAtMirror(texts, await npmScopes()) : []
}

import { closeSync, existsSync, lstatSync, openSync, readFileSync, readSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type EnvironmentRequest, environmentFilePath, maxEnvironmentFileBytes } from '@corral/protocol'
import type { WantedTool } from '@corral/tasks'
import { CliError } from '../cli-error.js'

/** What the files of a directory say about its environment. */
export interface LocalEnvironment {
  /** The file it was read from. */
  source: string
  request: EnvironmentRequest
  /** Parts of a foreign file that are not used. */
  leftOut: string[]
  tools: WantedTool[]
}

/** Our file, else one of another tool; undefined where there is neither. A problem in it is the user's to solve. */
export async function readLocalEnvironment(directory: string, part?: string): Promise<LocalEnvironment | undefined> {
  const { foreignFiles, parseEnvironmentFile, readForeignEnvironment, versionFiles, wantedTools } = await import(
    '@corral/tasks'
  )
  const root = resolve(directory)
  const own = join(root, environmentFilePath)
  try {
    const found = existsSync(own)
      ? { source: own, request: parseEnvironmentFile(environmentText(own), own, part), leftOut: [] }
      : readForeignEnvironment(presentFiles(root, foreignFiles))
    if (!found) return undefined
    const inPart = found.request.directory
    const paths = [...(inPart ? versionFiles.map((name) => `${inPart}/${name}`) : []), ...versionFiles]
    return { ...found, tools: wantedTools(found.request.tools, found.source, presentFiles(root, paths)) }
  } catch (error) {
    throw unusable(error)
  }
}

/** The text of an environment file. Tasks read it from a commit and follow no links there. */
export function environmentText(path: string): string {
  const stat = lstatSync(path)
  if (stat.isFile()) return readFileSync(path, 'utf8')
  throw new CliError(`${path} is ${stat.isSymbolicLink() ? 'a symbolic link' : 'no file'}; only a plain file is read`, {
    hint: 'Put the file itself in its place.',
  })
}

export function unusable(error: unknown): unknown {
  const { code, message, hint } = error as { code?: string; message: string; hint?: string }
  if (code !== 'EnvironmentInvalid') return error
  return new CliError(message, { cause: error, hint: hint ?? 'docs/environments.md has every field.' })
}

/** Those of the paths that are files of a usual size. */
export function presentFiles(root: string, paths: readonly string[]): { path: string; text: string }[] {
  return paths.flatMap((path) => {
    const stat = statSync(join(root, path), { throwIfNoEntry: false })
    if (!stat?.isFile() || stat.size > maxEnvironmentFileBytes) return []
    return [{ path, text: readFileSync(join(root, path), 'utf8') }]
  })
}

const maxBeginningBytes = 1024 * 1024

/** The text of a file that may be large, such as a lock file: as much of it as tells what it is. Undefined where it is none. */
export function beginningOf(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (!stat?.isFile()) return undefined
  const file = openSync(path, 'r')
  try {
    const bytes = Buffer.alloc(Math.min(stat.size, maxBeginningBytes))
    // Editors on Windows put a byte order mark in front, which package managers read over.
    return bytes.toString('utf8', 0, readSync(file, bytes)).replace(/^\uFEFF/, '')
  } finally {
    closeSync(file)
  }
}

import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { environmentFilePath } from '@corral/protocol'
import { CliError } from '../cli-error.js'
import { type DetectedPart, detectParts, nestedLockFiles } from '../environment/detect-parts.js'
import { type DetectedSetup, detectMake, detectSetup } from '../environment/detect-setup.js'
import { environmentFileText } from '../environment/environment-text.js'
import { beginningOf, presentFiles, unusable } from '../environment/local-environment.js'
import { otherProjects } from '../environment/other-projects.js'
import { shellQuote } from '../output/shell-quote.js'
import { print, say } from './common.js'

export interface InitOptions {
  json?: boolean
  force?: boolean
  /** A file of another tool that is taken although lock files are there. */
  from?: string
}

/** `corral env init`. */
export async function initEnvironment(directory: string, options: InitOptions): Promise<void> {
  const root = resolve(directory)
  const file = join(root, environmentFilePath)
  if (existsSync(file) && !options.force)
    throw new CliError(`${file} is there already`, { hint: 'Change it by hand, or replace it with --force.' })
  const { detected, parts } = detectIn(root)
  const isKnown = detected.length + parts.length > 0
  const { foreignFiles, readForeignEnvironment, versionFiles } = await import('@corral/tasks')
  const versions = presentFiles(root, versionFiles).map(({ path }) => path)
  const asked = options.from === undefined ? foreignFiles : [askedFile(root, options.from, foreignFiles)]
  const isAsked = options.from !== undefined
  const named = await foreignOf(() => readForeignEnvironment(presentFiles(root, asked)), isKnown && !isAsked)
  const saysNothing = named !== undefined && named.request.setup === undefined && named.request.start.length === 0
  // Commands of a devcontainer count on the programs of its image; many a one names an image and nothing to run in it.
  const yields = isKnown && !isAsked && named !== undefined && (saysNothing || named.source.includes('devcontainer'))
  const foreign = yields ? undefined : named
  const others = foreign ? [] : otherProjects(namesIn(root))
  if (!isKnown && !foreign) throw unknownProject(root, others)
  const notSetUp = foreign || parts.length > 0 ? others : [...others, ...nestedLockFiles(root, detected)]
  mkdirSync(dirname(file), { recursive: true })
  const { request } = foreign ?? {}
  const start = request?.start.map(({ run }) => run) ?? []
  writeFileSync(
    file,
    environmentFileText({
      detected,
      parts,
      versionFiles: versions,
      ...(foreign && request
        ? { foreign: { source: foreign.source, setup: request.setup, env: request.env, tools: request.tools, start } }
        : {}),
    }),
  )
  const from = foreign ? [foreign.source] : becauseOf(detected, parts)
  const found = foreign ? { detected: [], parts: [] } : { detected, parts }
  const leftOut = foreign ? foreign.leftOut : yields ? [named.source] : []
  print({ file, ...found, from, leftOut, notSetUp }, options, () =>
    [
      `wrote ${file}, from ${from.join(', ')}`,
      ...(leftOut.length > 0 ? [`not taken over: ${leftOut.join(', ')}`] : []),
      ...(yields && !saysNothing
        ? [`its commands instead of lock files: ${fromCommand(directory, named.source)}`]
        : []),
      ...(notSetUp.length > 0 ? [`not set up, add it by hand where tasks need it: ${notSetUp.join(', ')}`] : []),
      `Commit it, then try it: corral run "Run the tests" --agent NAME${parts[0] && !foreign ? ` --part ${parts[0].name}` : ''}`,
    ].join('\n'),
  )
}

function askedFile(root: string, from: string, known: readonly string[]): string {
  const path = relative(root, resolve(root, from))
  if (!known.includes(path))
    throw new CliError(`${from} is no file that is read here`, { exitCode: 2, hint: `One of ${known.join(', ')}.` })
  if (existsSync(join(root, path))) return path
  throw new CliError(`there is no ${join(root, path)}`, { hint: 'Leave --from out to take lock files.' })
}

function fromCommand(directory: string, source: string): string {
  const where = directory === '.' ? '' : ` ${shellQuote(directory)}`
  return `corral env init${where} --force --from ${source}`
}

function unknownProject(root: string, others: readonly string[]): CliError {
  const problem =
    others.length > 0
      ? `${root}: no set-up is known here for ${others.join(', ')}`
      : `${root} has no lock file that is known here`
  const image = namesIn(root).some((name) => /^(Dockerfile|Containerfile)$/.test(name))
    ? ' An image that is built of its Dockerfile elsewhere can be imported (corral image import) and named in `image`.'
    : ''
  const registries = others.length > 0 ? '; what its set-up fetches from has to be granted with `corral env grant`' : ''
  return new CliError(problem, {
    hint: `Write ${environmentFilePath} by hand: docs/environments.md has its fields${registries}.${image}`,
  })
}

/** What the root says; else what directories below it say, each for itself; a Makefile last. */
function detectIn(root: string): { detected: DetectedSetup[]; parts: DetectedPart[] } {
  const names = new Set(namesIn(root))
  const read = (file: string): string | undefined => beginningOf(join(root, file))
  const own = detectSetup(names, read)
  if (own.length > 0) return { detected: own, parts: [] }
  const parts = detectParts(root)
  const made = parts.length > 1 ? [] : detectMake(names, read)
  return { detected: made, parts: made.length > 0 ? [] : parts }
}

function becauseOf(detected: readonly DetectedSetup[], parts: readonly DetectedPart[]): string[] {
  const inParts = parts.flatMap((part) => part.detected.map(({ because }) => `${part.path}/${because}`))
  return [...detected.map(({ because }) => because), ...inParts]
}

/** One that cannot be used is no hindrance where lock files say enough. */
async function foreignOf<T>(read: () => T, hasOther: boolean): Promise<T | undefined> {
  try {
    return read()
  } catch (error) {
    if (!hasOther) throw unusable(error)
    say(`${(error as Error).message}; lock files are used instead`)
    return undefined
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch (error) {
    throw new CliError(`${directory} cannot be read`, { cause: error, hint: 'Name the directory of a repository.' })
  }
}

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { Instrumenter } from '@stryker-mutator/instrumenter'
import { logTexts } from './log-texts.mjs'
import { keyOf } from './mutant-key.mjs'

/** Part of every sample: another number chooses other mutants. */
export const defaultSeed = 20261117
export const defaultSampleSize = 100

/**
 * The keys of `size` mutants of these files, chosen at random and the same ones each time: each mutant has its place in an
 * order that depends on nothing but the seed and the mutant, so that a file that is added moves few of them.
 */
export async function sampleOfMutants(
  root: string,
  files: readonly string[],
  { size, seed }: { size: number; seed: number },
): Promise<string[]> {
  const instrumenter = new Instrumenter(silent)
  const { mutants } = await instrumenter.instrument(
    files.map((path) => ({ name: join(root, path), mutate: true, content: readFileSync(join(root, path), 'utf8') })),
    { plugins: null, excludedMutations: [], ignorers: [logTexts], noHeader: true },
  )
  return mutants
    .filter(({ status }) => status !== 'Ignored')
    .map((mutant) => keyOf({ ...mutant, fileName: relative(root, mutant.fileName) }))
    .map((key) => ({ key, order: createHash('sha256').update(`${seed} ${key}`).digest('hex') }))
    .sort((one, other) => (one.order < other.order ? -1 : 1))
    .slice(0, size)
    .map(({ key }) => key)
}

export const silent = {
  isTraceEnabled: () => false,
  isDebugEnabled: () => false,
  isInfoEnabled: () => false,
  isWarnEnabled: () => false,
  isErrorEnabled: () => false,
  isFatalEnabled: () => false,
  trace: () => undefined,
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  fatal: () => undefined,
}

// Builds the supervisor, and beside it the library that protects the daemon: `node build.mjs [OUTFILE]`. Prints what it did.
// Without a compiler it says so and succeeds: the Node supervisor takes over then, and the daemon goes without.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const library = 'undumpable.c'

/** Compiles the C sources of the supervisor into `outFile` unless it is newer than all of them. */
export function buildSupervisor(outFile = join(here, '..', 'dist', 'native', 'corral-supervisor')) {
  if (process.platform !== 'linux') return { built: false, reason: `no supervisor on ${process.platform}` }
  const names = readdirSync(here).filter((name) => name !== library)
  const sources = names.filter((name) => name.endsWith('.c')).map((name) => join(here, name))
  const inputs = names.filter((name) => /\.(c|h|mjs)$/.test(name)).map((name) => join(here, name))
  const flags = ['-O2', '-Wall', '-Wextra', '-D_GNU_SOURCE']
  return compile(outFile, sources, inputs, [[...flags, '-static'], flags])
}

/** Compiles the library a Node process loads so that code of the same user can neither read nor trace it. */
function buildUndumpable(outFile = join(here, '..', 'dist', 'native', 'undumpable.node')) {
  if (process.platform !== 'linux') return { built: false, reason: `no such call on ${process.platform}` }
  const source = join(here, library)
  return compile(outFile, [source], [source], [['-O2', '-Wall', '-Wextra', '-shared', '-fPIC', '-nostdlib']])
}

/** Tries compilers and sets of flags until one works, unless `outFile` is newer than all `inputs`. */
function compile(outFile, sources, inputs, variants) {
  const newest = Math.max(...inputs.map((path) => statSync(path).mtimeMs))
  const current = statSync(outFile, { throwIfNoEntry: false })
  if (current && current.mtimeMs >= newest) return { built: true, outFile, reason: 'up to date' }

  mkdirSync(dirname(outFile), { recursive: true })
  const temporary = `${outFile}.${process.pid}`
  const failures = []
  for (const compiler of [process.env.CC, 'cc', 'gcc', 'clang'].filter(Boolean)) {
    for (const flags of variants) {
      const words = [...flags, '-s', '-o', temporary, ...sources]
      const run = spawnSync(compiler, words, { encoding: 'utf8', timeout: 120_000 })
      if (run.status === 0) {
        renameSync(temporary, outFile)
        return { built: true, outFile, reason: `${compiler} ${flags.join(' ')}`, warnings: run.stderr }
      }
      failures.push(`${compiler} ${flags.join(' ')}: ${run.error ? run.error.message : run.stderr}`)
      if (run.error) break
    }
  }
  rmSync(temporary, { force: true })
  return { built: false, reason: failures.join('\n') }
}

if (process.argv[1] && fileURLToPath(import.meta.url) === process.argv[1]) {
  const result = buildSupervisor(process.argv[2])
  if (result.warnings) console.warn(result.warnings)
  console.log(
    result.built
      ? `supervisor: ${result.outFile} (${result.reason})`
      : `supervisor: not built, the Node supervisor will be used (install a C compiler, e.g. "apt-get install gcc libc6-dev")\n${result.reason}`,
  )
  const guard = buildUndumpable(process.argv[2] && join(dirname(process.argv[2]), 'undumpable.node'))
  if (guard.warnings) console.warn(guard.warnings)
  if (!guard.built) console.log(`daemon: readable for code of its own user (${guard.reason})`)
}

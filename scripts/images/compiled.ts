import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

/**
 * Writes what V8 compiles of the program, for a bundle that will lie at `filename`. That of the bundle itself is what one run of
 * a server happened to need, under the random seed of that run: no two are the same.
 */
export function writeCompiled(program: string, filename: string, out: string): void {
  const script = join(import.meta.dirname, 'write-compiled.mjs')
  const seeds = ['--hash-seed=1', '--random-seed=1']
  execFileSync(process.execPath, [...seeds, script, program, filename, out], {
    env: { PATH: process.env.PATH ?? '' },
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: 5 * 60_000,
  })
}

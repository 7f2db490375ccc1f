/**
 * What V8 compiles of a program for its own help, the same bytes whenever and wherever it is asked for: `node --hash-seed=1
 * --random-seed=1 write-compiled.mjs PROGRAM FILENAME OUT`. FILENAME is where the program will lie: it is part of the result.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { setFlagsFromString } from 'node:v8'
import { Script } from 'node:vm'

const [, , program, filename, out] = process.argv
// Code that a collection of garbage threw away would be missing, and when one comes depends on the machine.
setFlagsFromString('--no-flush-bytecode')
const script = new Script(readFileSync(program, 'latin1'), { filename })
process.argv = [process.execPath, program, 'server', '--help']
process.once('exit', () => {
  // V8 refuses what was compiled under other flags than its own; the seeds themselves were taken at the start.
  for (const usual of ['--flush-bytecode', '--hash-seed=0', '--random-seed=0']) setFlagsFromString(usual)
  writeFileSync(out, script.createCachedData())
})
const module_ = { exports: {} }
script.runInThisContext()(createRequire(program), module_, module_.exports, program)

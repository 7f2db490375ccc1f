#!/usr/bin/env node
// What `corral` is in the bundle: runs `main.cjs` with the code V8 compiled for it when it was built. Parsing and compiling
// the program anew would take as long as starting the API server. Without that code, or with one of another Node, V8
// compiles as ever.
const { readFileSync, writeFileSync } = require('node:fs')
const { createRequire } = require('node:module')
const { join } = require('node:path')
const { Script } = require('node:vm')

const program = join(__dirname, 'main.cjs')
const compiled = `${program}.compiled`
// One function in plain ASCII, which is the quickest to read.
const script = new Script(readFileSync(program, 'latin1'), { filename: program, cachedData: readCompiled() })
const module_ = { exports: {} }
script.runInThisContext()(createRequire(program), module_, module_.exports, program)
// Set by the build alone: what this run needed is what the next one will need.
if (process.env.CORRAL_WRITE_COMPILED) process.on('exit', () => writeFileSync(compiled, script.createCachedData()))

function readCompiled() {
  try {
    return readFileSync(compiled)
  } catch {
    return undefined
  }
}

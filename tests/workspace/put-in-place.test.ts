import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { temporaryDirectory } from '@corral/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { putInPlace } from '../../scripts/put-in-place.mjs'

let scratch: ReturnType<typeof temporaryDirectory>
const at = (...names: string[]): string => join(scratch.path, ...names)

beforeEach(() => {
  scratch = temporaryDirectory()
})
afterEach(() => scratch[Symbol.asyncDispose]())

function build(files: Record<string, string>): void {
  mkdirSync(at('fresh', 'web'), { recursive: true })
  for (const [name, text] of Object.entries(files)) writeFileSync(at('fresh', name), text)
}

/** Reads a file again and again, as commands that start one after the other do. */
const reader = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { readFileSync } = require('node:fs')
  const seen = new Set()
  let stop = false
  parentPort.on('message', () => { stop = true })
  const look = () => {
    for (let i = 0; i < 50; i++) {
      let text
      try { text = readFileSync(workerData, 'utf8') } catch (error) { text = error.code }
      seen.add(/^(.)\\1{9999}$/.test(text) ? 'whole' : text.slice(0, 20))
    }
    if (stop) parentPort.postMessage([...seen])
    else setImmediate(look)
  }
  look()
  parentPort.postMessage('reading')`

describe('a build that is put in its place', () => {
  it('never leaves a command without its program, or with half of it', async () => {
    build({ 'main.cjs': 'a'.repeat(10_000) })
    putInPlace(at('fresh'), at('bundle'))
    const worker = new Worker(reader, { eval: true, workerData: at('bundle', 'main.cjs') })
    const answer = (): Promise<unknown> => new Promise((resolve) => worker.once('message', resolve))
    expect(await answer()).toBe('reading')
    for (let round = 0; round < 200; round++) {
      build({ 'main.cjs': String(round % 10).repeat(10_000) })
      putInPlace(at('fresh'), at('bundle'), { withdrawn: ['main.cjs.compiled'] })
    }
    worker.postMessage('stop')
    expect(await answer()).toEqual(['whole'])
    await worker.terminate()
  })

  it('replaces directories as a whole, keeps what others put there, and leaves nothing beside it', () => {
    build({ 'main.cjs': 'old', 'web/old.js': '', 'main.cjs.compiled': 'of old' })
    putInPlace(at('fresh'), at('bundle'))
    writeFileSync(at('bundle', 'corral-supervisor'), 'built by set-up')
    build({ 'main.cjs': 'new', 'web/new.js': '' })
    putInPlace(at('fresh'), at('bundle'), { withdrawn: ['main.cjs.compiled'], order: ['main.cjs'] })
    expect(readdirSync(at('bundle')).sort()).toEqual(['corral-supervisor', 'main.cjs', 'web'])
    expect(readdirSync(at('bundle', 'web'))).toEqual(['new.js'])
    expect(readFileSync(at('bundle', 'main.cjs'), 'utf8')).toBe('new')
    expect(readdirSync(scratch.path)).toEqual(['bundle'])
  })
})

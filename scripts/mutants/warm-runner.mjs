// A runner of vitest that tries many mutants in one process. A test runs once without a mutant, which tells the mutants it
// reaches, once more to see whether it can be repeated at all, and then once per mutant; whatever fails is followed by a run
// without a mutant, so that no mutant is blamed for what the one before it broke.
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { VitestTestRunner } from 'vitest/runners'
import { getFn } from 'vitest/suite'

/** What the instrumented code reads: which mutant is on, and who is told what was reached. */
globalThis.__stryker__ ??= {}
const stryker = globalThis.__stryker__

/** Runs of a line that a mutant may have beyond those without it: more is a loop without an end. */
const loopFactor = 100
const fewestHits = 10_000

/** How much longer than without a mutant a test may take: more is one that waits for ever. */
const slowFactor = 6
const shortestMs = 8_000

/**
 * What keeps a run short where tests start processes. Both can only lower the score: a mutant that the tests left out
 * would have seen counts as one that survived.
 */
const mostTries = 30
const slowestMs = 20_000

export default class WarmRunner extends VitestTestRunner {
  #plan = JSON.parse(readFileSync(process.env.CORRAL_MUTANT_PLAN ?? '', 'utf8'))
  #sample = new Set(this.#plan.sample)
  #decided = new Set(this.#plan.decided)
  /** By test: the mutants still to be tried, and what the current try is. */
  #tries = new Map()
  /** By mutant: how many tests have not seen it. */
  #passed = new Map()
  #file = ''

  constructor(config) {
    super(config)
    stryker.mutantCoverage = { static: {}, perTest: {} }
    if (this.#plan.active !== undefined) {
      this.#activate(this.#plan.active, 0)
      return
    }
    // What a test file before this one saw needs no second look.
    for (const line of readFileSync(this.#plan.results, 'utf8').split('\n').filter(Boolean)) {
      const { seen, passed } = JSON.parse(line)
      if (seen !== undefined) this.#decided.add(seen)
      if (passed !== undefined) this.#pass(passed)
    }
  }

  /** A mutant that is on from the start needs to be seen once, and only by tests that run code of its file. */
  onBeforeRunTask(test) {
    const { active, only } = this.#plan
    if (active !== undefined && (this.#decided.has(active) || !only.includes(test.id))) test.mode = 'skip'
    return super.onBeforeRunTask?.(test)
  }

  onCollectStart(file) {
    this.#file = file.filepath
    return super.onCollectStart?.(file)
  }

  async onBeforeTryTask(test, options) {
    test.result.errors = undefined
    await super.onBeforeTryTask?.(test, options)
    if (this.#plan.active !== undefined) {
      this.#note({ pid: process.pid, mutant: stryker.activeMutant, file: test.file.filepath, at: Date.now() })
      return
    }
    const tries = this.#tries.get(test.id) ?? { kind: 'first', left: [] }
    this.#tries.set(test.id, tries)
    stryker.currentTestId = tries.kind === 'first' ? test.id : 'repeated'
    this.#activate(tries.kind === 'mutant' ? tries.mutant : undefined, tries.hits?.[tries.mutant] ?? 0)
    this.#note({ pid: process.pid, mutant: stryker.activeMutant, file: test.file.filepath, at: Date.now() })
  }

  async runTask(test) {
    const tries = this.#tries.get(test.id)
    const startedAt = Date.now()
    const run = getFn(test)()
    if (tries?.kind !== 'mutant') {
      await run
      if (tries) tries.ms = Math.max(tries.ms ?? 0, Date.now() - startedAt)
      return
    }
    const limitMs = Math.max(shortestMs, slowFactor * (tries.ms ?? 0))
    let timer
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`Test timed out in ${limitMs}ms`)), limitMs)
    })
    run.catch(() => {}) // told by the race, or too late to matter
    await Promise.race([run, late]).finally(() => clearTimeout(timer))
  }

  async onAfterRetryTask(test, options) {
    await super.onAfterRetryTask?.(test, options)
    const tries = this.#tries.get(test.id)
    const hasFailed = test.result.state === 'fail'
    if (!tries) {
      if (hasFailed) this.#see(this.#plan.active, 'Killed', test)
      test.result.state = 'pass'
      return
    }
    const hasLooped = (stryker.hitCount ?? 0) > (stryker.hitLimit ?? Number.POSITIVE_INFINITY)
    const isLate = (test.result.errors ?? []).some(({ message }) => /timed out in \d+ms/.test(message ?? ''))
    this.#activate(undefined, 0)
    stryker.currentTestId = undefined
    const goesOn = this.#next(test, tries, hasFailed, hasLooped || isLate)
    if (!goesOn) this.#tries.delete(test.id)
    // vitest tries again what failed with an error, and nothing else.
    test.result.state = goesOn ? 'fail' : 'pass'
    test.result.errors = goesOn ? [new Error('there is another mutant')] : undefined
  }

  /** Chooses the next try of a test; false where there is none. */
  #next(test, tries, hasFailed, isTimeout) {
    const file = test.file.filepath
    switch (tries.kind) {
      case 'first': {
        tries.hits = stryker.mutantCoverage.perTest[test.id] ?? {}
        const reached = Object.keys(tries.hits).filter((id) => this.#sample.has(id))
        const sources = [...new Set(Object.keys(tries.hits).map((id) => this.#plan.sources[id]))]
        this.#tell({ reached, sources, id: test.id, file, ms: tries.ms })
        tries.left = reached.filter((id) => this.#isOpen(id))
        if (hasFailed) this.#tell({ broken: test.name, file })
        if (hasFailed || tries.left.length === 0 || tries.ms > slowestMs) return false
        tries.kind = 'control'
        return true
      }
      case 'control':
        if (hasFailed) this.#tell({ apart: tries.left, id: test.id, file })
        else if (tries.mutant !== undefined) tries.mutant = undefined
        return !hasFailed && this.#take(tries)
      case 'mutant':
        if (!hasFailed) {
          this.#pass(tries.mutant)
          this.#tell({ passed: tries.mutant, file })
          return this.#take(tries)
        }
        this.#see(tries.mutant, isTimeout ? 'Timeout' : 'Killed', test)
        tries.left = tries.left.filter((id) => this.#isOpen(id))
        if (tries.left.length === 0) return false
        tries.kind = 'control'
        return true
    }
  }

  #see(mutant, by, test) {
    this.#decided.add(mutant)
    this.#tell({ seen: mutant, by, test: test.name, file: test.file.filepath })
  }

  #pass(mutant) {
    this.#passed.set(mutant, (this.#passed.get(mutant) ?? 0) + 1)
  }

  #isOpen(mutant) {
    return !this.#decided.has(mutant) && (this.#passed.get(mutant) ?? 0) < mostTries
  }

  #take(tries) {
    tries.mutant = tries.left.find((id) => this.#isOpen(id))
    tries.left = tries.left.filter((id) => id !== tries.mutant)
    tries.kind = 'mutant'
    return tries.mutant !== undefined
  }

  #activate(mutant, hits) {
    stryker.activeMutant = mutant
    stryker.hitCount = mutant === undefined ? undefined : 0
    stryker.hitLimit = Math.max(fewestHits, hits * loopFactor)
  }

  onAfterRunFiles(files) {
    const loaded = Object.keys(stryker.mutantCoverage.static).filter((id) => this.#sample.has(id))
    for (const file of new Set(files?.map(({ filepath }) => filepath) ?? [this.#file])) this.#tell({ loaded, file })
    return super.onAfterRunFiles?.(files)
  }

  #note(value) {
    writeFileSync(this.#plan.progress, JSON.stringify(value))
  }

  #tell(value) {
    appendFileSync(this.#plan.results, `${JSON.stringify(value)}\n`)
  }
}

import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../../..')

/** Something to be done and seen in a cluster; it may say a figure. The title carries the ids that it asserts. */
export interface Step {
  readonly title: string
  run(): Promise<string | undefined>
}

export interface Result {
  readonly title: string
  readonly status: 'passed' | 'failed' | 'not run'
  readonly ms: number
  readonly note: string
}

/** Takes steps in turn and tells each. Steps of one row build on each other: the first that fails ends the row. */
export class Report {
  readonly results: Result[] = []
  /** What is tested is the tree as it was at the start. */
  readonly #commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim()
  readonly #only: RegExp

  constructor(only = '') {
    this.#only = new RegExp(only)
  }

  async row(steps: readonly Step[]): Promise<boolean> {
    let isBroken = false
    for (const step of steps) {
      if (isBroken) {
        this.#tell({ title: step.title, status: 'not run', ms: 0, note: 'a step before it failed' })
        continue
      }
      if (!this.#only.test(step.title)) continue
      const startedMs = Date.now()
      const [status, note] = await step.run().then(
        (said) => ['passed', said ?? ''] as const,
        (error: unknown) => ['failed', (error as Error).message] as const,
      )
      this.#tell({ title: step.title, status, ms: Date.now() - startedMs, note })
      isBroken = status === 'failed'
    }
    return !isBroken
  }

  notRun(title: string, note: string): void {
    this.#tell({ title, status: 'not run', ms: 0, note })
  }

  #tell(result: Result): void {
    this.results.push(result)
    const sign = { passed: 'yes', failed: 'NO ', 'not run': '-  ' }[result.status]
    process.stdout.write(
      `${sign} ${result.title} (${result.ms} ms)${result.note ? `: ${result.note.slice(0, 2_000)}` : ''}\n`,
    )
  }

  /** Writes what was seen, with the versions it was seen on, and what `docs/requirements.md` is made from. */
  write(command: string, facts: Readonly<Record<string, string>>): void {
    const head = { command, commit: this.#commit, date: new Date().toISOString() }
    const tests = this.results.map(({ title, ...rest }) => ({ name: title, ...rest }))
    mkdirSync(join(root, 'docs/reports'), { recursive: true })
    writeFileSync(join(root, 'docs/reports/cluster.json'), `${JSON.stringify({ ...head, facts, tests }, null, 2)}\n`)
  }

  /** Steps taken again take the place of their former results, each with the commit and time it was taken at. */
  amend(): void {
    const file = join(root, 'docs/reports/cluster.json')
    const former = JSON.parse(readFileSync(file, 'utf8')) as { tests: { name: string }[] }
    const again = { commit: this.#commit, date: new Date().toISOString() }
    const taken = new Map(this.results.map(({ title, ...rest }) => [title, { name: title, ...rest, ...again }]))
    const known = new Set(former.tests.map(({ name }) => name))
    const added = [...taken.values()].filter(({ name }) => !known.has(name))
    const tests = [...former.tests.map((test) => taken.get(test.name) ?? test), ...added]
    writeFileSync(file, `${JSON.stringify({ ...former, tests }, null, 2)}\n`)
  }

  get hasFailed(): boolean {
    return this.results.some(({ status }) => status === 'failed')
  }
}

import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { FileResult } from '../../scripts/second-try.js'

const root = join(import.meta.dirname, '../..')

/** `.ci/run` with stand-ins for everything it calls: npm fails for the scripts that a file names, once for each line. */
describe('.ci/run', () => {
  let directory: string
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'corral-ci-'))
    const program = (path: string, text: string): void => {
      mkdirSync(dirname(join(directory, path)), { recursive: true })
      writeFileSync(join(directory, path), `#!/bin/sh\n${text}\n`)
      chmodSync(join(directory, path), 0o755)
    }
    for (const name of ['bin/node', 'bin/go', 'node_modules/.bin/tsx']) program(name, 'exit 0')
    program(
      'bin/npm',
      `if grep -qx "$3" "${directory}/fails"; then grep -vx "$3" "${directory}/fails" > "${directory}/rest"; mv "${directory}/rest" "${directory}/fails"; exit 1; fi`,
    )
    mkdirSync(join(directory, '.ci'))
    copyFileSync(join(root, '.ci/run'), join(directory, '.ci/run'))
    spawnSync('git', ['init', '-q'], { cwd: directory })
    const identity = ['-c', 'user.name=Test', '-c', 'user.email=test@localhost']
    spawnSync('git', [...identity, 'commit', '-q', '--allow-empty', '-m', 'first'], { cwd: directory })
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  function run(...fails: string[]): { status: number | null; stdout: string } {
    writeFileSync(join(directory, 'fails'), fails.map((each) => `${each}\n`).join(''))
    const env = {
      PATH: `${join(directory, 'bin')}:${process.env.PATH}`,
      HOME: directory,
      XDG_CACHE_HOME: join(directory, 'cache'),
    }
    return spawnSync('bash', [join(directory, '.ci/run')], { encoding: 'utf8', env })
  }

  it('says how long each step took, when it passes and when it fails', () => {
    const passed = run()
    expect(passed.status).toBe(0)
    expect(passed.stdout).toMatch(
      /== durations \(\d+s in all\)\n\d+s {2}set-up\n\d+s {2}lint\n[\s\S]*\d+s {2}summary\n$/,
    )
    expect(passed.stdout).not.toContain('second try')
    const failed = run('types')
    expect(failed.status).toBe(1)
    expect(failed.stdout).toMatch(/== durations [\s\S]*\d+s {2}types\n$/)
    expect(failed.stdout).not.toContain('== dead code')
  })

  it('tells of a second try that saved a run, in that run and in the next', () => {
    const saved = run('conformance:real')
    expect(saved.status).toBe(0)
    expect(saved.stdout).toMatch(
      /needed a second try in this run:\n\S+Z {2}\w+ {2}npm run --silent conformance:real\n$/,
    )
    expect(run().stdout).toMatch(
      /^second tries of earlier runs on this machine: 1, the last ones:\n.*conformance:real\n/,
    )
  })

  it('tries no step twice without writing it down', () => {
    const text = readFileSync(join(root, '.ci/run'), 'utf8')
    expect(text).not.toMatch(/(\S.*) \|\| \1/)
    for (const config of ['vitest.config.ts', 'vitest.agents.config.ts', 'vitest.web.config.ts'])
      expect(readFileSync(join(root, config), 'utf8')).not.toMatch(/\bretry\b/)
  })
})

/** A stand-in for vitest: each run writes the next report of `reports` and ends with whether a file in it failed. */
describe('scripts/failed-files-again.ts', () => {
  let directory: string
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'corral-again-'))
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  const file = (name: string, status: string): FileResult => ({
    name,
    status,
    assertionResults: [{ fullName: `${name} works`, status }],
  })
  const numbered = (count: number, status: string): FileResult[] =>
    Array.from({ length: count }, (_, index) => file(`${index}.test.ts`, status))

  it.each<{
    when: string
    runs: (FileResult[] | undefined)[]
    status: number
    calls: string[]
    log: string
    report: string[]
  }>([
    {
      when: 'everything passes',
      runs: [numbered(2, 'passed')],
      status: 0,
      calls: [''],
      log: '',
      report: ['passed', 'passed'],
    },
    {
      when: 'one file passes at its second try',
      runs: [[file('a.test.ts', 'passed'), file('b.test.ts', 'failed')], [file('b.test.ts', 'passed')]],
      status: 0,
      calls: ['', 'b.test.ts'],
      log: 'b.test.ts',
      report: ['passed', 'passed'],
    },
    {
      when: 'one file fails twice',
      runs: [[file('a.test.ts', 'passed'), file('b.test.ts', 'failed')], [file('b.test.ts', 'failed')]],
      status: 1,
      calls: ['', 'b.test.ts'],
      log: '',
      report: ['passed', 'failed'],
    },
    {
      when: 'six files fail',
      runs: [numbered(6, 'failed')],
      status: 1,
      calls: [''],
      log: '',
      report: Array(6).fill('failed'),
    },
    { when: 'it fails before it has a report', runs: [undefined], status: 1, calls: [''], log: '', report: [] },
  ])('when $when', ({ runs, status, calls, log, report }) => {
    for (const [index, results] of runs.entries()) {
      if (results)
        writeFileSync(
          join(directory, `run-${index}.json`),
          JSON.stringify({ testResults: results.map((each) => ({ ...each, name: join(directory, each.name) })) }),
        )
    }
    const suite = join(directory, 'suite.sh')
    writeFileSync(
      suite,
      `n=$(cat calls 2>/dev/null | wc -l); echo "$*" >> calls; [ -f run-$n.json ] || exit 1; cp run-$n.json report.json; ! grep -q '"failed"' run-$n.json`,
    )
    const script = join(root, 'scripts/failed-files-again.ts')
    const ran = spawnSync(join(root, 'node_modules/.bin/tsx'), [script, 'report.json', 'sh', suite], {
      cwd: directory,
      encoding: 'utf8',
      env: { ...process.env, CORRAL_SECOND_TRIES: join(directory, 'log') },
    })
    const text = (name: string): string => {
      const path = join(directory, name)
      return existsSync(path) ? readFileSync(path, 'utf8') : ''
    }
    expect(ran.status).toBe(status)
    expect(text('calls').trimEnd().split('\n')).toEqual(calls)
    expect(text('log').trim().split(/\s+/).at(-1)).toBe(log)
    const kept = text('report.json')
      ? (JSON.parse(text('report.json')) as { testResults: FileResult[] }).testResults
      : []
    expect(kept.map((each) => each.status)).toEqual(report)
  })
})

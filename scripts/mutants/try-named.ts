import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type NamedMutant, namedMutants } from './named.js'

/**
 * Runs the test of each fault with the fault in the code; the files themselves stay as they are. True when the test saw
 * each. `words`: only faults whose description has them.
 */
export function tryNamed(root: string, words = ''): boolean {
  const seen = namedMutants
    .filter(({ what }) => what.includes(words))
    .map((mutant) => {
      const survived = tryOne(root, mutant)
      process.stdout.write(`${survived ? 'SURVIVED' : 'seen    '}  ${mutant.what}${survived ? `: ${survived}` : ''}\n`)
      return !survived
    })
  process.stdout.write(`${seen.filter(Boolean).length} of ${seen.length} seen\n`)
  return seen.every(Boolean)
}

/** Why the mutant counts as survived; undefined where it was seen. */
function tryOne(root: string, mutant: NamedMutant): string | undefined {
  const { file, find, test, fails } = mutant
  if (readFileSync(join(root, file), 'utf8').split(find).length !== 2) return `"${find}" is not once in ${file}`
  const directory = join(root, 'test-report/mutants')
  mkdirSync(directory, { recursive: true })
  const report = join(directory, 'named.json')
  const config = join(directory, 'named.vitest.mjs')
  rmSync(report, { force: true })
  writeFileSync(config, vitestConfig(root, mutant, report))
  spawnSync(join(root, 'node_modules/.bin/vitest'), ['run', '-c', config, '-t', fails.source], {
    cwd: root,
    stdio: 'ignore',
  })
  if (!existsSync(report)) return `${test} did not run`
  return failedTests(report).length > 0 ? undefined : `no test of ${test} named ${fails} failed`
}

/** A configuration that changes the code while it is loaded. */
function vitestConfig(root: string, { file, find, replace, test }: NamedMutant, report: string): string {
  const settings = {
    root,
    resolve: { conditions: ['corral-source'] },
    ssr: { resolve: { conditions: ['corral-source'], externalConditions: ['corral-source'] } },
    test: {
      include: [test],
      pool: 'forks',
      // A fault may make a test wait for ever.
      testTimeout: 120_000,
      reporters: [['json', { outputFile: report }]],
    },
  }
  return `const [file, find, replace] = ${JSON.stringify([join(root, file), find, replace])}
const plugins = [
  {
    name: 'fault',
    enforce: 'pre',
    transform: (code, id) => (id.split('?')[0] === file ? code.replace(find, () => replace) : undefined),
  },
]
export default { plugins, ...${JSON.stringify(settings)} }
`
}

function failedTests(report: string): string[] {
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as {
    testResults: { assertionResults: { fullName: string; status: string }[] }[]
  }
  return testResults.flatMap(({ assertionResults }) =>
    assertionResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName),
  )
}

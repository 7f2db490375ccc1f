import { crate, debianSource, goModule, type Source, sdist } from './sources.js'

/** A public project whose own tests a task runs without network. */
export interface Project {
  readonly name: string
  readonly clients: string
  readonly source: Source
  /** Shell lines that bring it to the state its developers have it in: archives leave out files such as locks. */
  readonly prepare?: string
  /** Programs the machine must have for it. */
  readonly needs: readonly string[]
  /** Toolchains to add before the build, as `corral env tools --add` names them. */
  readonly tools?: readonly string[]
  /** Lines for the environment file beside what `corral env init` writes. */
  readonly change?: (text: string) => string
  /** Which of its tests are left out, and why that is no matter of the sandbox. */
  readonly without?: string
  /** How many tests the output of its check tells of. */
  readonly tests: (output: string) => number
  /** Fewer mean that the check ran something else. */
  readonly atLeast: number
}

/** The record keeps the end of a check's output, so one that says much is counted by the check itself. */
const counted = (run: string, pattern: string): string =>
  `'${run} > /tmp/tests.log 2>&1 || { tail -40 /tmp/tests.log; exit 1; }; grep -Eo "${pattern}" /tmp/tests.log'`

const sum = (output: string, pattern: RegExp): number =>
  [...output.matchAll(pattern)].reduce((total, [, count]) => total + Number(count), 0)

export const projects: readonly Project[] = [
  {
    name: 'express 4.18',
    clients: 'npm',
    source: debianSource('node-express'),
    prepare: 'npm install --package-lock-only --ignore-scripts --no-audit --no-fund --silent',
    needs: ['npm', 'apt-get'],
    change: (text) =>
      text.replace(
        'run: npm test',
        'run: npm test -- --grep "strict option when (undefined|true) should .*(primitives|stack trace)" --invert',
      ),
    without: '4, which expect an older Node’s wording of JSON errors and fail on Node 20 outside of a task as well',
    tests: (output) => sum(output, /^\s*(\d+) passing/gm),
    atLeast: 1_000,
  },
  {
    name: 'click 8.3',
    clients: 'uv',
    source: sdist('click', '8.3.0'),
    // As in its repository; without it every task looks through the whole virtual environment for work of the agent.
    prepare: 'echo .venv/ > .gitignore',
    needs: ['pip', 'python3'],
    change: (text) =>
      text.replace('python -m pytest -q', 'python -m pytest -q -k "not (test_echo_via_pager and (test5 or test6))"'),
    without: '12 that race with the pager they start, and fail now and then outside of a task as well',
    tests: (output) => sum(output, /(\d+) passed/g),
    atLeast: 500,
  },
  {
    name: 'gin 1.11',
    clients: 'Go',
    source: goModule('github.com/gin-gonic/gin', 'v1.11.0'),
    needs: ['go'],
    change: (text) =>
      text.replace('go test ./...', `${counted('go test -v ./...', '^--- PASS').slice(0, -1)} | grep -c .'`),
    tests: (output) => sum(output, /^(\d+)$/gm),
    atLeast: 300,
  },
  {
    name: 'ripgrep 14.1',
    clients: 'Cargo',
    source: crate('ripgrep', '14.1.1'),
    needs: ['cargo'],
    tools: ['rust@1'],
    change: (text) => text.replace('cargo test --offline', counted('cargo test --offline', '[0-9]+ passed')),
    tests: (output) => sum(output, /(\d+) passed/g),
    atLeast: 300,
  },
  {
    name: 'commons-csv 1.9',
    clients: 'Maven',
    source: debianSource('commons-csv'),
    needs: ['mvn', 'apt-get'],
    change: (text) => text.replaceAll('mvn -B -ntp', 'mvn -B -ntp -Drat.skip'),
    without: 'none; the check of licence headers before them is skipped, since the environment file has no such header',
    tests: (output) => Math.max(0, ...[...output.matchAll(/Tests run: (\d+)/g)].map(([, count]) => Number(count))),
    atLeast: 300,
  },
  {
    name: 'cmark 0.30',
    clients: 'CMake',
    source: debianSource('cmark'),
    needs: ['cmake', 'apt-get'],
    change: (text) =>
      text.replace(
        /run: (cmake --build .* && ctest .*)--output-on-failure/,
        (_, run: string) => `run: ${counted(`${run}--verbose`, '[0-9]+ passed')}`,
      ),
    tests: (output) => sum(output, /(\d+) passed/g),
    atLeast: 600,
  },
]

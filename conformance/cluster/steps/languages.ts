import { deepEqual, match } from 'node:assert/strict'
import type { Cluster } from '../harness/cluster.js'
import type { Step } from '../harness/report.js'
import { succeeded, templateLike } from './tasks.js'

interface Language {
  readonly name: string
  readonly files: Readonly<Record<string, string>>
  /** What builds and tests it, with nothing from outside. */
  readonly check: string
  /** What the agent changes: without it the check fails. */
  readonly work: string
  readonly version: string
}

/** A project with one failing test in each language that the image is for. */
const languages: readonly Language[] = [
  {
    name: 'Node',
    files: {
      'sum.js': 'exports.sum = (a, b) => a - b\n',
      'sum.test.js': `require('node:test')('sums', () => require('node:assert').equal(require('./sum.js').sum(2, 3), 5))\n`,
    },
    check: 'node --test',
    work: "sed -i 's/a - b/a + b/' sum.js",
    version: 'node --version',
  },
  {
    name: 'Python',
    files: {
      'total.py': 'def total(a, b):\n    return a - b\n',
      'test_total.py':
        'import unittest\nfrom total import total\n\n\nclass Test(unittest.TestCase):\n    def test_total(self):\n        self.assertEqual(total(2, 3), 5)\n',
    },
    check: 'python3 -m venv /tmp/venv && /tmp/venv/bin/python -B -m unittest',
    work: "sed -i 's/a - b/a + b/' total.py",
    version: 'python3 --version',
  },
  {
    name: 'Go',
    files: {
      'go.mod': 'module example.com/sum\n\ngo 1.19\n',
      'sum.go': 'package sum\n\nfunc Sum(a, b int) int { return a - b }\n',
      'sum_test.go':
        'package sum\n\nimport "testing"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(2, 3) != 5 {\n\t\tt.Fatal(Sum(2, 3))\n\t}\n}\n',
    },
    check: 'go test ./...',
    work: "sed -i 's/a - b/a + b/' sum.go",
    version: 'go version',
  },
  {
    name: 'Rust',
    files: {
      '.gitignore': 'target\n',
      'Cargo.toml': '[package]\nname = "sum"\nversion = "0.1.0"\nedition = "2021"\n',
      'lib.rs':
        'pub fn sum(a: i32, b: i32) -> i32 {\n    a - b\n}\n\n#[test]\nfn sums() {\n    assert_eq!(sum(2, 3), 5);\n}\n',
    },
    // The library lies beside Cargo.toml: a repository of the suite has no directories.
    check:
      'mkdir -p src && cp lib.rs src/lib.rs && CARGO_TARGET_DIR=/tmp/target cargo test --offline && rm -r src Cargo.lock',
    work: "sed -i 's/a - b/a + b/' lib.rs",
    version: 'rustc --version',
  },
]

/** Tasks in the image with languages: the check of each builds and tests the project where the agent worked. */
export function languageSteps(cluster: Cluster, image: string): Step[] {
  return [
    {
      title: 'S3-13: the image with languages is in the node, and a template of it is applied',
      async run() {
        await cluster.connect()
        await cluster.apply(await templateLike(cluster, 'languages', { image }))
        return image
      },
    },
    ...languages.map(({ name, files, check, work, version }) => ({
      title: `S3-13: a task in ${name}: its check builds and tests the project inside the sandbox`,
      async run() {
        const repo = await cluster.repository(files)
        const task = succeeded(
          await cluster.api.run({
            repo: repo.url,
            task: 'make the test pass',
            agent: { name: 'command', command: `${work}; ${version} > version.txt` },
            sandbox: { template: 'languages' },
            checks: [{ name: 'test', command: check }],
          }),
        )
        const outcomes = task.checks?.rounds.map(({ results }) => results.map(({ outcome }) => outcome).join())
        deepEqual(outcomes, ['passed'])
        const said = await repo.show(task.branch!, 'version.txt')
        match(said, /\d+\.\d+/)
        return said
      },
    })),
  ]
}

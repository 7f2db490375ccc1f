import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { commandLineAgentName } from '@corral/agents'
import type { CreateTaskRequest } from '@corral/protocol'

const run = promisify(execFile)

const files: Readonly<Record<string, string>> = {
  'package.json': '{ "name": "demo", "type": "module" }\n',
  'README.md': '# Demo\n\nA small repository with one bug. Its test finds it: `node --test`.\n',
  'median.js': `/** The middle one of the numbers. */
export function median(numbers) {
  const sorted = [...numbers].sort()
  return sorted[Math.floor(sorted.length / 2)]
}
`,
  'median.test.js': `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { median } from './median.js'

test('finds the middle of small numbers', () => assert.equal(median([3, 1, 2]), 2))
test('finds the middle of larger ones', () => assert.equal(median([9, 10, 100]), 10))
`,
}

const command = `echo "I am a command line: no model, no key. I was asked: $CORRAL_PROMPT"
echo "First the tests."
node --test --test-reporter=tap 2>&1 | grep -E "^# (pass|fail)|not ok" || true
echo "median() sorts numbers as text: 10 comes before 9. A comparison function fixes that."
sed -i 's/\\[...numbers\\].sort()/[...numbers].sort((one, other) => one - other)/' median.js
cat > CHANGELOG.md <<'END'
# Changes

- \`median\` compares numbers as numbers.
END
echo "Again the tests."
node --test --test-reporter=tap 2>&1 | grep -E "^# (pass|fail)"`

/** A task on a repository of its own, below `directory`, that ends with a branch and needs neither key nor network. */
export async function demoRequest(directory: string): Promise<CreateTaskRequest> {
  const repo = join(directory, 'median')
  if (!existsSync(repo)) await makeRepository(repo)
  return {
    repo,
    task: 'The median of [9, 10, 100] comes out wrong. Find out why, fix it, and note it in the change log.',
    agent: { name: commandLineAgentName, command },
  }
}

async function makeRepository(path: string): Promise<void> {
  const half = `${path}.${process.pid}.part`
  await rm(half, { recursive: true, force: true })
  await mkdir(half, { recursive: true })
  const author = ['-c', 'user.name=Corral', '-c', 'user.email=corral@localhost', '-c', 'commit.gpgsign=false']
  const git = (...args: string[]): Promise<unknown> => run('git', ['-C', half, ...author, ...args])
  await git('init', '-q', '-b', 'main')
  for (const [name, content] of Object.entries(files)) await writeFile(join(half, name), content)
  await git('add', '-A')
  await git('commit', '-q', '-m', 'A median with a bug')
  // Of two commands that make it at once, the second takes the repository of the first.
  await rename(half, path).catch((error: unknown) => {
    if (!existsSync(path)) throw error
    return rm(half, { recursive: true, force: true })
  })
}

import type { Reporter, TestModule } from 'vitest/node'

/** Tests that may be left out even where everything is installed, each with its reason. */
const allowed: readonly { pattern: RegExp; reason: string }[] = [
  { pattern: /Go module/, reason: 'compares with sources that only the Go tool fetches' },
  { pattern: /from the mirror|lies on another host/, reason: 'not every machine has pip, Go and Cargo' },
  { pattern: /a server with Git LFS/, reason: 'not every machine has git-lfs' },
  { pattern: /in a browser/, reason: 'not every machine has Chromium; `npm run test:web` brings it' },
  { pattern: /full size\)/, reason: 'it takes what other tests need; `npm run test:full` has it' },
  { pattern: /memory file systems/, reason: 'the process tier has no mounts' },
  {
    pattern: /process > .*no dead process in its container/,
    reason: 'the process tier has no first process of its own',
  },
  { pattern: /compiled supervisor' .*kill -9 of the Node supervisor/, reason: 'it has none' },
  { pattern: /Node supervisor' .*tracing the supervisor/, reason: 'it runs as the same user as the code it watches' },
]

/**
 * Where every part must be there (CI), a test that was left out is a failure: a missing bubblewrap or kubectl would
 * otherwise pass in silence.
 */
export class NoSkips implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const skipped = modules.flatMap((module) =>
      [...module.children.allTests('skipped')].map((test) => `${module.relativeModuleId}: ${test.fullName}`),
    )
    const unexpected = skipped.filter((name) => !allowed.some(({ pattern }) => pattern.test(name)))
    if (unexpected.length === 0) return
    process.exitCode = 1
    process.stderr.write(
      `\nleft out although every part must be here:\n${unexpected.map((name) => `  ${name}`).join('\n')}\n`,
    )
  }
}

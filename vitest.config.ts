import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { NoSkips } from './scripts/no-skips.js'

const isCi = process.env.CI === 'true'
const isFull = process.env.CORRAL_TEST_SIZE === 'full'

/**
 * Tests that leave no trace in their process: no global, no environment, no module that remembers. Their files share
 * workers, so that each module is loaded once and not once per file, which is half of the time such files take.
 */
const shared = [
  ...['agents', 'apiserver', 'controllers', 'daemon', 'kube', 'mirror', 'ports', 'protocol'].map(testsOf),
  ...['resources', 'runtime', 'sdk', 'server', 'streams', 'web'].map(testsOf),
  'tests/controllers/**/*.test.ts',
]

export default defineConfig({
  test: {
    // Twice the cores: most suites wait for processes of their own half of their time.
    maxWorkers: Math.max(4, availableParallelism()),
    reporters: ['default', ['json', { outputFile: 'test-report/report.json' }], ...(isCi ? [new NoSkips()] : [])],
    projects: [
      project('shared', { include: shared, isolate: false }),
      project('own', {
        include: ['packages/*/src/**/*.test.ts', 'tests/**/*.test.ts', 'conformance/**/*.test.ts'],
        exclude: [
          ...shared,
          'tests/agents/**',
          // Journeys 1, 2 and 8 run here as well; `npm run test:web` runs all.
          'tests/web/{pages,pictures,decisions,connection,states,sizes,seed-002}.test.ts',
        ],
      }),
    ],
  },
})

function project(name: string, test: { include: string[]; exclude?: string[]; isolate?: boolean }): object {
  return {
    resolve: { conditions: ['corral-source'] },
    ssr: { resolve: { conditions: ['corral-source'], externalConditions: ['corral-source'] } },
    test: {
      ...test,
      name,
      exclude: ['**/node_modules/**', '**/dist/**', ...(test.exclude ?? [])],
      pool: 'forks',
      // These only end what hangs: a machine that is busy with eight other programs must not reach them.
      testTimeout: isFull ? 1_800_000 : 600_000,
      hookTimeout: 600_000,
      expect: { poll: { timeout: 240_000 } },
      allowOnly: !isCi,
    },
  }
}

function testsOf(name: string): string {
  return `packages/${name}/src/**/*.test.ts`
}

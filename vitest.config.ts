import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './scripts/longest-first.js'
import { NoSkips } from './scripts/no-skips.js'

const isCi = process.env.CI === 'true'
const isFull = process.env.CORRAL_TEST_SIZE === 'full'

export default defineConfig({
  resolve: { conditions: ['corral-source'] },
  ssr: { resolve: { conditions: ['corral-source'], externalConditions: ['corral-source'] } },
  test: {
    include: ['packages/*/src/**/*.test.ts', 'tests/**/*.test.ts', 'conformance/**/*.test.ts'],
    exclude: [
      '**/node_modules/**',
      '**/dist/**',
      'tests/agents/**',
      // Journeys 1, 2 and 8 run here as well; `npm run test:web` runs all.
      'tests/web/{pages,pictures,decisions,connection,states,sizes,seed-002}.test.ts',
    ],
    pool: 'forks',
    // Files share workers, so that each module is loaded once and not once per file, which took a sixth of a run. So a
    // test leaves no trace in its process: what it sets (a variable, timers, a listener) it sets back.
    isolate: false,
    // Twice the cores: most suites wait for processes of their own half of their time.
    maxWorkers: Math.max(4, availableParallelism()),
    sequence: { sequencer: LongestFirst },
    // These only end what hangs: a machine that is busy with eight other programs must not reach them.
    testTimeout: isFull ? 1_800_000 : 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 240_000 } },
    allowOnly: !isCi,
    reporters: ['default', ['json', { outputFile: 'test-report/report.json' }], ...(isCi ? [new NoSkips()] : [])],
  },
})

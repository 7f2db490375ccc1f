import { defineConfig } from 'vitest/config'
import { NoSkips } from './scripts/no-skips.js'

const isCi = process.env.CI === 'true'
const isFull = process.env.CORRAL_TEST_SIZE === 'full'

export default defineConfig({
  resolve: { conditions: ['corral-source'] },
  ssr: { resolve: { conditions: ['corral-source'], externalConditions: ['corral-source'] } },
  test: {
    include: ['packages/*/src/**/*.test.ts', 'tests/**/*.test.ts', 'conformance/**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/dist/**', 'tests/agents/**', 'tests/web/pages.test.ts'],
    pool: 'forks',
    // Two even on two cores: most suites wait for processes of their own.
    maxWorkers: 2,
    // These only end what hangs: a machine that is busy with eight other programs must not reach them.
    testTimeout: isFull ? 1_800_000 : 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 240_000 } },
    reporters: ['default', ['json', { outputFile: 'test-report/report.json' }], ...(isCi ? [new NoSkips()] : [])],
    allowOnly: !isCi,
  },
})

import { defineConfig } from 'vitest/config'
import { NoSkips } from './scripts/no-skips.js'

const isCi = process.env.CI === 'true'

export default defineConfig({
  resolve: { conditions: ['corral-source'] },
  ssr: { resolve: { conditions: ['corral-source'], externalConditions: ['corral-source'] } },
  test: {
    include: ['packages/*/src/**/*.test.ts', 'tests/**/*.test.ts', 'conformance/**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/dist/**', 'tests/agents/**'],
    pool: 'forks',
    // Two even on two cores: most suites wait for processes of their own.
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    reporters: ['default', ['json', { outputFile: 'test-report/report.json' }], ...(isCi ? [new NoSkips()] : [])],
    allowOnly: !isCi,
    // A machine that stalls for seconds is no reason to refuse a change; the report shows what needed a second try.
    retry: isCi ? 1 : 0,
  },
})

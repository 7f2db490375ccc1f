import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

/** Tests that run real agent command lines; they are installed once into a cache outside the tree. */
export default defineConfig({
  resolve: { conditions: ['corral-source'] },
  ssr: { resolve: { conditions: ['corral-source'], externalConditions: ['corral-source'] } },
  test: {
    include: ['tests/agents/**/*.test.ts'],
    globalSetup: 'tests/agents/install-agents.ts',
    pool: 'forks',
    // Twice the cores: agents wait for their model half of their time.
    maxWorkers: Math.max(4, availableParallelism()),
    testTimeout: 600_000,
    hookTimeout: 900_000,
    expect: { poll: { timeout: 240_000 } },
    reporters: ['default', ['json', { outputFile: 'test-report/agents.json' }]],
    allowOnly: process.env.CI !== 'true',
  },
})

import { defineConfig } from 'vitest/config'

/** Tests that run real agent command lines; they are installed once into a cache outside the tree. */
export default defineConfig({
  resolve: { conditions: ['corral-source'] },
  ssr: { resolve: { conditions: ['corral-source'], externalConditions: ['corral-source'] } },
  test: {
    include: ['tests/agents/**/*.test.ts'],
    pool: 'forks',
    testTimeout: 120_000,
    hookTimeout: 600_000,
    reporters: ['default', ['json', { outputFile: 'test-report/agents.json' }]],
    allowOnly: process.env.CI !== 'true',
  },
})

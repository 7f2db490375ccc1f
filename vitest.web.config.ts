import { defineConfig } from 'vitest/config'

/** Journeys in a real browser against a real platform. */
export default defineConfig({
  resolve: { conditions: ['corral-source'] },
  ssr: { resolve: { conditions: ['corral-source'], externalConditions: ['corral-source'] } },
  test: {
    include: ['tests/web/**/*.test.ts'],
    // Clusters that are wrong in one way each, and states and sizes that no platform shows at will: `CORRAL_TEST_SIZE=full npm run test:web`.
    exclude: process.env.CORRAL_TEST_SIZE === 'full' ? [] : ['tests/web/{connection,states,sizes}.test.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 240_000 } },
    reporters: ['default', ['json', { outputFile: 'test-report/web.json' }]],
    allowOnly: process.env.CI !== 'true',
  },
})

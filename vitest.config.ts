import { defineConfig } from 'vitest/config'

export default defineConfig({
  resolve: { conditions: ['corral-source'] },
  ssr: { resolve: { conditions: ['corral-source'], externalConditions: ['corral-source'] } },
  test: {
    include: ['packages/*/src/**/*.test.ts', 'tests/**/*.test.ts', 'conformance/**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/dist/**'],
    pool: 'forks',
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})

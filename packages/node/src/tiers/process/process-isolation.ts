import { CradleIsolation } from '../../cradle/client/cradle-isolation.js'
import type { Isolation } from '../../isolation/isolation.js'
import { cradleOptions, type IsolationOptions } from '../isolation-options.js'

/** Cells as plain processes: hygiene, not a sandbox. Only for those who ask for it. */
export function processIsolation(options: IsolationOptions): Isolation {
  const isolation: CradleIsolation = new CradleIsolation({
    ...cradleOptions(options),
    tier: 'process',
    tierOptions: () => ({}),
    mapsPortsToSockets: true,
    probe: async () => {
      const limits = await isolation.limits()
      const isRoot = process.getuid?.() === 0
      return {
        tier: 'process',
        usable: true,
        limits,
        checks: [
          { name: 'own session and environment', passed: true },
          { name: 'own uid', passed: isRoot, ...(isRoot ? {} : { detail: 'needs root' }) },
          { name: 'holds back hostile code', passed: false, detail: 'not a sandbox' },
        ],
      }
    },
  })
  return isolation
}

/**
 * Corral on a real Kubernetes node, beside upstream's controller in the same run: `npm run bench:cluster`. See
 * `npm run e2e:cluster` for what it takes to have one.
 */
import { join } from 'node:path'
import { enterCluster } from '../conformance/cluster/harness/enter.js'

process.exitCode = await enterCluster(join(import.meta.dirname, 'cluster-inside.ts'), [
  '--without-gvisor',
  'a benchmark of the usual runtime',
  ...process.argv.slice(2),
])

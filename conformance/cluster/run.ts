/**
 * Corral on a real Kubernetes: `npm run e2e:cluster`. Images, chart and real Helm, kubelet, containerd, gVisor, kube-proxy,
 * CoreDNS and Prometheus, everything in network and process namespaces of its own. Programs and images are built once
 * into caches outside the tree. `-- --only REGEX` takes the steps whose titles match; with `--amend` their results replace
 * those of the last report.
 */
import { join } from 'node:path'
import { enterCluster } from './harness/enter.js'

process.exitCode = await enterCluster(join(import.meta.dirname, 'inside.ts'), process.argv.slice(2))

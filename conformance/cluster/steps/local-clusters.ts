import { equal, match } from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findKubectl, runProgram } from '@corral/testing'
import { ensureShellcheck } from '../../../tools/oracle/node-packages.js'
import type { Cluster } from '../harness/cluster.js'
import type { Step } from '../harness/report.js'

const root = join(import.meta.dirname, '../../..')

/**
 * The scripts for local clusters. What makes the cluster is a stand-in that writes down how it was called, since it needs
 * Docker and images of its own; everything after "a kubeconfig exists" is real.
 */
export function localClusterSteps(cluster: Cluster, helmProgram: string, hasGvisor: boolean): Step[] {
  const { kubectl, namespace, directory, kubeconfig } = cluster
  const bin = join(directory, 'bin')
  const calls = join(directory, 'minikube-calls')
  const env = {
    ...process.env,
    PATH: `${bin}:${process.env.PATH ?? ''}`,
    KUBECONFIG: kubeconfig,
    NAMESPACE: namespace,
    ...(hasGvisor ? { GVISOR: '1' } : {}),
  }
  const script = (name: string, verb: string) =>
    runProgram('bash', [join(root, 'scripts/cluster', name), verb], { env, timeoutMs: 900_000 })
  return [
    {
      title: 'S2-X1: shellcheck has nothing to say of the scripts for clusters',
      async run() {
        const scripts = readdirSync(join(root, 'scripts/cluster')).map((name) => join('scripts/cluster', name))
        const { code, stdout } = await runProgram(await ensureShellcheck(), ['-x', ...scripts], { cwd: root })
        equal(code, 0, stdout)
        return `${scripts.length} scripts`
      },
    },
    {
      title: `S2-D5 S2-X1 S2-S3${hasGvisor ? ' S2-P4' : ''}: scripts/cluster/minikube.sh up leads to a task that helm test runs${hasGvisor ? ' in gVisor' : ''}`,
      async run() {
        mkdirSync(bin)
        symlinkSync(helmProgram, join(bin, 'helm'))
        symlinkSync(findKubectl() ?? 'kubectl', join(bin, 'kubectl'))
        for (const name of ['minikube', 'kind', 'k3d'])
          writeFileSync(join(bin, name), `#!/bin/sh\necho "${name} $*" >> ${calls}\n`, { mode: 0o755 })
        const { code, stdout, stderr } = await script('minikube.sh', 'up')
        equal(code, 0, `${stdout}${stderr}`)
        match(stdout, /Phase:\s+Succeeded/)
        const said = readFileSync(calls, 'utf8')
        match(said, /minikube start --profile corral --container-runtime=containerd --cni=calico/)
        match(said, /minikube image load --profile corral \S+corral-daemon\.tar/)
        if (!hasGvisor) return undefined
        match(said, /minikube addons enable gvisor/)
        const runtime = 'jsonpath={.items[*].spec.runtimeClassName}'
        match(await kubectl('get', 'pods', '-o', runtime), /gvisor/)
        return undefined
      },
    },
    {
      title: 'S2-X1: kind.sh and k3d.sh install into the cluster that is there, and repeating that changes nothing',
      async run() {
        for (const name of ['kind.sh', 'k3d.sh']) {
          const { code, stdout, stderr } = await script(name, 'install')
          equal(code, 0, `${name}: ${stdout}${stderr}`)
        }
        const said = readFileSync(calls, 'utf8')
        match(said, /kind load image-archive --name corral \S+corral\.tar/)
        match(said, /k3d image import --cluster corral \S+corral\.tar/)
        return undefined
      },
    },
    {
      title: 'S2-X2: K8S_E2E=true npm run e2e runs the tasks of the suite against a kubeconfig',
      async run() {
        const { code, stdout, stderr } = await runProgram('npm', ['run', '--silent', 'e2e'], {
          cwd: root,
          env: { ...env, K8S_E2E: 'true', CORRAL_NAMESPACE: namespace },
          timeoutMs: 900_000,
        })
        equal(code, 0, `${stdout}${stderr}`)
        return `${stdout.split('\n').filter((line) => line.startsWith('yes')).length} steps`
      },
    },
  ]
}

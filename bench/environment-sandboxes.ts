import { join } from 'node:path'
import { AgentSandboxClient } from '@corral/agent-sandbox-sdk'
import { kubeClientFromConfig, loadKubeConfig } from '@corral/kube'
import { SandboxWarmPools, snapshotAnnotation } from '@corral/resources'
import { progress } from './common/bench-options.js'
import { until } from './common/until.js'

const pool = 'default'
const namespace = 'corral'

/**
 * A warm sandbox with the files of a snapshot, as a container with them in its image is: from the claim to the first output of the
 * test, through the SDK. No repository is brought in and no agent is started. Times in milliseconds.
 */
export async function sandboxStarts({
  dataDir,
  snapshot,
  test,
  rounds,
}: {
  dataDir: string
  snapshot: string
  test: string
  rounds: number
}): Promise<number[]> {
  const kubeconfigPath = join(dataDir, 'kubeconfig')
  const kube = kubeClientFromConfig(await loadKubeConfig({ path: kubeconfigPath }))
  await using client = new AgentSandboxClient({ kubeconfigPath, namespace })
  const times: number[] = []
  try {
    for (let round = -1; round < rounds; round++) {
      await until('a warm sandbox', async () => {
        const { spec, status } = await kube.get(SandboxWarmPools, { namespace, name: pool })
        return (status?.readyReplicas ?? 0) >= (spec.replicas ?? 1)
      })
      const began = performance.now()
      await using sandbox = await client.sandboxes.create({ pool, podAnnotations: { [snapshotAnnotation]: snapshot } })
      // The files come while the sandbox runs: the first look may be too early.
      const waits = 'until [ -e /workspace/repo/deps/0/0 ]; do sleep 0.005; done; cd /workspace/repo'
      const { stdout, exitCode } = await sandbox.exec(['sh', '-c', `${waits}; ${test}`])
      if (exitCode !== 0 || stdout.trim() === '0') throw new Error(`the files are not in the sandbox: ${stdout}`)
      if (round >= 0) times.push(performance.now() - began)
      progress(`warm sandbox with the snapshot, round ${round + 1} of ${rounds}`)
    }
  } finally {
    await kube.close()
  }
  return times
}

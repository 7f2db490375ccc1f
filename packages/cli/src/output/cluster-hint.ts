import { KubeError } from '@corral/resources'

/** The next move without a cluster to talk to. The packages that find this out do not know this command line. */
const noCluster = 'Start a platform with `corral up`, name its --data-dir, or give a cluster with --kubeconfig.'

const hints: Readonly<Record<string, string>> = {
  KubeConfigNotFound: noCluster,
  KubeConfigInvalid: noCluster,
}

/** What an API server's failure means for the kubeconfig in use. */
const serverHints: Readonly<Record<string, string>> = {
  ConnectionLost:
    'No API server answers at that address. Without a platform on this machine the cluster of kubectl is asked: start one with `corral up -d`, or choose another cluster with --context or --kubeconfig.',
  Timeout:
    'The API server in the kubeconfig does not answer in time. Without a platform on this machine the cluster of kubectl is asked: start one with `corral up -d`, or choose another cluster with --context or --kubeconfig.',
  CertificateInvalid:
    'The kubeconfig does not trust it: check certificate-authority of its cluster. Without a platform on this machine the cluster of kubectl is asked: start one with `corral up -d`, or choose another cluster with --context or --kubeconfig.',
  Unauthorized: 'The API server refuses the credentials in the kubeconfig. Sign in again, or choose another --context.',
  Forbidden: 'The user of the kubeconfig lacks that right. Ask for it, or choose another --context.',
}

/** The next move after a failure to talk to a cluster; undefined for a failure of another kind. */
export function clusterHint(thrown: unknown): string | undefined {
  const { code } = thrown as { code?: string }
  if (code === undefined) return undefined
  return hints[code] ?? (isOfServer(thrown, code) ? serverHints[code] : undefined)
}

/** Codes the SDK gives to the trouble of a sandbox too; these tell of the server where one of its calls is the cause. */
const alsoOfSdk: ReadonlySet<string> = new Set(['ConnectionLost', 'Timeout', 'CertificateInvalid', 'Unauthorized'])

function isOfServer(thrown: unknown, code: string): boolean {
  if (thrown instanceof KubeError) return true
  if (!(thrown instanceof Error) || thrown.name !== 'SandboxError' || !alsoOfSdk.has(code)) return false
  return thrown.cause instanceof KubeError && thrown.cause.code === code
}

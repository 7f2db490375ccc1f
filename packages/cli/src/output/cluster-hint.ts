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
    'No API server answers at the address in the kubeconfig. Is the cluster up? Choose another with --context or --kubeconfig.',
  Timeout:
    'The API server in the kubeconfig does not answer in time. Is it reachable from here? Choose another with --context or --kubeconfig.',
  CertificateInvalid:
    'The certificate of the API server is not one the kubeconfig trusts. Check certificate-authority of its cluster.',
  Unauthorized: 'The API server refuses the credentials in the kubeconfig. Sign in again, or choose another --context.',
  Forbidden: 'The user of the kubeconfig lacks that right. Ask for it, or choose another --context.',
}

/** The next move after a failure to talk to a cluster; undefined for a failure of another kind. */
export function clusterHint(thrown: unknown): string | undefined {
  const { code } = thrown as { code?: string }
  if (code === undefined) return undefined
  return hints[code] ?? (thrown instanceof KubeError ? serverHints[code] : undefined)
}

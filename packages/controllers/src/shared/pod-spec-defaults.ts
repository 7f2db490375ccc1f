import type { PodSpec, SandboxTemplate } from '@corral/resources'

/**
 * A template's pod spec made safe: no service account token unless asked for, and public resolvers where the default
 * network policy cuts the Pod off from the cluster's DNS. The given spec is left alone.
 */
export function withSecureDefaults(template: SandboxTemplate, spec: PodSpec): PodSpec {
  const result: PodSpec = { ...spec, automountServiceAccountToken: spec.automountServiceAccountToken ?? false }
  if (usesDefaultPolicy(template) && !spec.dnsPolicy) {
    result.dnsPolicy = 'None'
    result.dnsConfig = { nameservers: ['8.8.8.8', '1.1.1.1'] }
  }
  return result
}

function usesDefaultPolicy({ spec }: SandboxTemplate): boolean {
  return spec.networkPolicyManagement !== 'Unmanaged' && spec.networkPolicy === undefined
}

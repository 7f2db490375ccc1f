import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { writeSecret } from './certificates.js'
import type { HttpsEndpoint } from './serve-https.js'

export interface KubeconfigOptions {
  /** Name of cluster, user and context. */
  name?: string
  /** Default namespace of the context. */
  namespace?: string
}

/** A kubeconfig for the administrator, as text. It is JSON, which every reader of YAML reads. */
export function kubeconfigFor(
  endpoint: Pick<HttpsEndpoint, 'url' | 'tls' | 'token'>,
  options: KubeconfigOptions = {},
): string {
  const { name = 'corral', namespace = 'default' } = options
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const certificate = {
    'client-certificate-data': base64(endpoint.tls.admin.cert),
    'client-key-data': base64(endpoint.tls.admin.key),
  }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server: endpoint.url, 'certificate-authority-data': base64(endpoint.tls.ca.cert) } }],
    users: [
      { name, user: certificate },
      { name: `${name}-token`, user: { token: endpoint.token } },
    ],
    contexts: [
      { name, context: { cluster: name, user: name, namespace } },
      { name: `${name}-token`, context: { cluster: name, user: `${name}-token`, namespace } },
    ],
    'current-context': name,
  }
  return `${JSON.stringify(config, null, 2)}\n`
}

/** Writes the kubeconfig, readable by its owner only and all at once. */
export function writeKubeconfig(
  path: string,
  endpoint: Pick<HttpsEndpoint, 'url' | 'tls' | 'token'>,
  options: KubeconfigOptions = {},
): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  writeSecret(path, kubeconfigFor(endpoint, options))
}

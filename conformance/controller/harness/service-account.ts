import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { KubeClient } from '@corral/kube'
import {
  ClusterRoleBindings,
  ClusterRoles,
  defineKind,
  isAlreadyExists,
  type KubeObject,
  Namespaces,
  type ResourceKind,
  RoleBindings,
  Roles,
  ServiceAccounts,
} from '@corral/resources'
import { dump, loadAll } from 'js-yaml'
import type { ControlPlane } from '../../../tools/oracle/index.js'

const kinds: Readonly<Record<string, ResourceKind<KubeObject>>> = {
  ClusterRole: ClusterRoles,
  ClusterRoleBinding: ClusterRoleBindings,
  Namespace: Namespaces,
  Role: Roles,
  RoleBinding: RoleBindings,
  ServiceAccount: ServiceAccounts,
}

/** Applies the manifests about identity and permissions in a YAML file; other kinds in it are left out. */
export async function applyPermissions(client: KubeClient, file: string): Promise<void> {
  for (const document of loadAll(readFileSync(file, 'utf8'))) {
    const object = document as KubeObject | null
    const kind = kinds[object?.kind ?? '']
    if (object && kind) await client.apply(kind, object, { fieldManager: 'conformance', force: true })
  }
}

interface TokenRequest extends KubeObject {
  spec: { expirationSeconds: number }
  status?: { token: string }
}

export interface Account {
  readonly namespace: string
  readonly name: string
}

/** A kubeconfig with which a program is this service account and no other user. Answers its path. */
export async function accountKubeconfig(client: KubeClient, plane: ControlPlane, account: Account): Promise<string> {
  const { namespace, name } = account
  const tokens = defineKind<TokenRequest>('v1', 'TokenRequest', `serviceaccounts/${name}/token`)
  const request: TokenRequest = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: { namespace },
    spec: { expirationSeconds: 7_200 },
  }
  const { status } = await client.create(tokens, request)
  const path = join(plane.directory, `${name}.kubeconfig`)
  const cluster = { server: plane.url, 'certificate-authority-data': Buffer.from(plane.ca).toString('base64') }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'account',
    clusters: [{ name: 'plane', cluster }],
    users: [{ name: 'account', user: { token: status?.token ?? '' } }],
    contexts: [{ name: 'account', context: { cluster: 'plane', user: 'account', namespace } }],
  }
  writeFileSync(path, dump(config), { mode: 0o600 })
  return path
}

export async function ensureNamespace(client: KubeClient, name: string): Promise<void> {
  try {
    await client.create(Namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
  }
}

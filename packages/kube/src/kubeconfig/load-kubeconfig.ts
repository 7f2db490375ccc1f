import { access, readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { KubeError } from '@corral/resources'
import type { ClusterAccess, Credentials } from '../cluster-access.js'
import { type CredentialSource, cachedSource, tokenFileSource } from './credential-sources.js'
import { parseExecPlugin, runExecPlugin } from './exec-plugin.js'
import { impersonationHeaders } from './impersonation.js'
import {
  type Entry,
  inlineOrFile,
  invalid,
  type MergedKubeConfig,
  mergeKubeConfigs,
  readKubeConfig,
  resolveFrom,
  text,
} from './kubeconfig-file.js'

export interface LoadKubeConfigOptions {
  /** This file instead of `KUBECONFIG` and the default one. */
  path?: string
  /** Instead of the current context. */
  context?: string
  /** Instead of the context's namespace. */
  namespace?: string
  env?: NodeJS.ProcessEnv
  /** Where a pod finds its ServiceAccount. */
  serviceAccountDir?: string
}

/**
 * How to reach the API server, by kubectl's rules: the given file, else the files of `KUBECONFIG` merged, else
 * `~/.kube/config`, else the ServiceAccount of the pod we run in. Rejects with a `KubeError` of code
 * `KubeConfigNotFound` or `KubeConfigInvalid` that names file and context.
 */
export async function loadKubeConfig(options: LoadKubeConfigOptions = {}): Promise<ClusterAccess> {
  const { env = process.env } = options
  const config = await readKubeConfigs(options, env)
  if (config) return accessFor(config, options, env)
  const inCluster = await inClusterAccess(options, env)
  if (inCluster) return inCluster
  const places = env.KUBECONFIG ? `KUBECONFIG (${env.KUBECONFIG})` : join(home(env), '.kube', 'config')
  throw new KubeError('KubeConfigNotFound', `no kubeconfig in ${places}, and this is not a pod of a cluster`)
}

/** The file that is named, else those of `KUBECONFIG` or the default one, merged; undefined where there is none. */
export async function readKubeConfigs(
  options: Pick<LoadKubeConfigOptions, 'path'>,
  env: NodeJS.ProcessEnv,
): Promise<MergedKubeConfig | undefined> {
  if (options.path !== undefined) return readKubeConfig(options.path, false)
  const listed = (env.KUBECONFIG ?? '').split(delimiter).filter((file) => file !== '')
  const files = listed.length > 0 ? listed : [join(home(env), '.kube', 'config')]
  const configs: MergedKubeConfig[] = []
  for (const file of files) {
    const config = await readKubeConfig(file, true)
    if (config) configs.push(config)
  }
  return configs.length > 0 ? mergeKubeConfigs(configs) : undefined
}

async function accessFor(
  config: MergedKubeConfig,
  options: LoadKubeConfigOptions,
  env: NodeJS.ProcessEnv,
): Promise<ClusterAccess> {
  const files = config.files.join(', ')
  const contextName = options.context ?? config.currentContext
  if (contextName === undefined) throw invalid(files, 'no context given and current-context is not set')
  const context = config.contexts.get(contextName)
  if (!context) throw invalid(files, `no context "${contextName}"; there are: ${names(config.contexts)}`)
  const problem = (what: string, entry: Entry = context) => invalid(entry.file, `context "${contextName}": ${what}`)

  const clusterName = text(context, 'cluster')
  const cluster = config.clusters.get(clusterName ?? '')
  if (!cluster) throw problem(`no cluster "${clusterName ?? ''}"; there are: ${names(config.clusters)}`)
  const userName = text(context, 'user')
  const user = userName === undefined ? undefined : config.users.get(userName)
  if (userName !== undefined && !user) throw problem(`no user "${userName}"; there are: ${names(config.users)}`)

  const server = parseServer(text(cluster, 'server'), (what) => problem(what, cluster))
  const proxy = parseProxy(text(cluster, 'proxy-url'), server, (what) => problem(what, cluster))
  const ca = await inlineOrFile(cluster, 'certificate-authority')
  const servername = text(cluster, 'tls-server-name')
  const origin = `${context.file} (context "${contextName}")`
  return {
    server,
    namespace: options.namespace ?? text(context, 'namespace') ?? 'default',
    tls: {
      rejectUnauthorized: cluster.fields['insecure-skip-tls-verify'] !== true,
      ...(ca === undefined ? {} : { ca }),
      ...(servername === undefined ? {} : { servername }),
    },
    ...(proxy ? { proxy } : {}),
    credentials: user ? await credentialSource(user, { origin, server, ca, env }) : async () => ({}),
    origin,
  }
}

interface CredentialContext {
  origin: string
  server: URL
  ca: string | undefined
  env: NodeJS.ProcessEnv
}

async function credentialSource(user: Entry, context: CredentialContext): Promise<CredentialSource> {
  const impersonation = impersonationHeaders(user)
  const source = await ownSource(user, context)
  return impersonation ? async (options) => ({ ...(await source(options)), impersonation }) : source
}

/** What proves who the user is, before the user who is impersonated. */
async function ownSource(user: Entry, context: CredentialContext): Promise<CredentialSource> {
  const { origin, server, ca, env } = context
  if (user.fields['auth-provider']) throw invalid(user.file, `user "${user.name}": auth-provider is not supported`)
  const cert = await inlineOrFile(user, 'client-certificate')
  const key = await inlineOrFile(user, 'client-key')
  if ((cert === undefined) !== (key === undefined)) {
    throw invalid(user.file, `user "${user.name}": client-certificate and client-key belong together`)
  }
  const certificate: Credentials = cert !== undefined && key !== undefined ? { cert, key } : {}

  const token = text(user, 'token')
  const tokenFile = text(user, 'tokenFile')
  if (tokenFile !== undefined) return tokenFileSource(resolveFrom(user, tokenFile), origin, certificate)
  if (token !== undefined) return async () => ({ ...certificate, authorization: `Bearer ${token}` })

  const username = text(user, 'username')
  if (username !== undefined) {
    const basic = Buffer.from(`${username}:${text(user, 'password') ?? ''}`).toString('base64')
    return async () => ({ ...certificate, authorization: `Basic ${basic}` })
  }
  const plugin = parseExecPlugin(user)
  if (!plugin) return async () => certificate
  const cluster = {
    server: server.href,
    ...(ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(ca).toString('base64') }),
  }
  return cachedSource(async () => {
    const issued = await runExecPlugin(plugin, { origin, cluster, env })
    return { ...issued, credentials: { ...certificate, ...issued.credentials } }
  })
}

async function inClusterAccess(
  options: LoadKubeConfigOptions,
  env: NodeJS.ProcessEnv,
): Promise<ClusterAccess | undefined> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = '443' } = env
  const directory = options.serviceAccountDir ?? '/var/run/secrets/kubernetes.io/serviceaccount'
  const tokenFile = join(directory, 'token')
  if (!host || !(await exists(tokenFile))) return undefined
  const ca = await readFile(join(directory, 'ca.crt'), 'utf8').catch(() => undefined)
  const namespace = await readFile(join(directory, 'namespace'), 'utf8').catch(() => 'default')
  return {
    server: new URL(`https://${host.includes(':') ? `[${host}]` : host}:${port}`),
    namespace: options.namespace ?? (namespace.trim() || 'default'),
    tls: { rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) },
    credentials: tokenFileSource(tokenFile, 'in-cluster ServiceAccount'),
    origin: 'in-cluster ServiceAccount',
  }
}

function parseServer(server: string | undefined, problem: (what: string) => KubeError): URL {
  if (server === undefined) throw problem('its cluster names no server')
  const withScheme = /^https?:\/\//.test(server) ? server : `https://${server}`
  if (!URL.canParse(withScheme)) throw problem(`server "${server}" is no URL`)
  return new URL(withScheme)
}

const proxyProtocols = ['http:', 'https:', 'socks5:', 'socks5h:']

function parseProxy(proxy: string | undefined, server: URL, problem: (what: string) => KubeError): URL | undefined {
  if (proxy === undefined) return undefined
  if (!URL.canParse(proxy)) throw problem(`proxy-url "${proxy}" is no URL`)
  const url = new URL(proxy)
  if (!proxyProtocols.includes(url.protocol))
    throw problem(`proxy-url of ${url.protocol} is not supported; there are: ${proxyProtocols.join(' ')}`)
  if (server.protocol !== 'https:') throw problem('proxy-url is supported for servers with TLS only')
  return url
}

const names = (entries: ReadonlyMap<string, Entry>): string => [...entries.keys()].join(', ') || 'none'
const home = (env: NodeJS.ProcessEnv): string => env.HOME ?? homedir()

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  )
}

import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ADMIN_NAME, ensureCertificates } from '../../packages/apiserver/src/http/certificates.js'
import { kubeconfigFor } from '../../packages/apiserver/src/http/kubeconfig.js'
import { controlPlanePrograms, type EnsureOptions, ensureOracle, type OracleBinaries } from './binaries.js'
import { freePorts, type Program, startProgram, untilReady } from './program.js'

export interface ControlPlaneOptions extends EnsureOptions {
  /** Where data, keys and logs go; a temporary directory without it. Removed by `stop` unless `keepFiles`. */
  directory?: string
  /** Garbage collection, namespaces, endpoint slices. True unless said otherwise. */
  withControllerManager?: boolean
  /** Added to kube-apiserver's command line. */
  apiserverFlags?: readonly string[]
  /** Requests of this group of users are written to `logs/audit.log`, one JSON object each. */
  audited?: string
  /** Added to kube-controller-manager's command line. */
  managerFlags?: readonly string[]
  /**
   * An address of this machine that Pods reach. With it they have accounts and find the API server as the Service
   * `kubernetes`, and API groups may be served by Pods.
   */
  podAddress?: string
  keepFiles?: boolean
}

/** A real Kubernetes control plane on loopback: etcd, kube-apiserver and, mostly, kube-controller-manager. */
export interface ControlPlane {
  /** Path of the administrator's kubeconfig: client certificate as `corral`, bearer token as `corral-token`. */
  readonly kubeconfig: string
  readonly url: string
  readonly token: string
  /** PEM. */
  readonly ca: string
  readonly directory: string
  readonly binaries: OracleBinaries<(typeof controlPlanePrograms)[number]>
  /** Process ids by program, for figures about memory and time. */
  readonly pids: Readonly<Record<string, number>>
  /** Ends kube-apiserver and starts it on the same port; etcd and the controller manager go on. */
  restartApiserver(): Promise<void>
  /** Ends every program, by id, and removes the directory. */
  stop(): Promise<void>
}

/** Starts the control plane and waits until `/readyz` says so. On failure nothing is left running. */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const binaries = await ensureOracle(controlPlanePrograms, options)
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'corral-oracle-'))
  const removeFiles = (): void => rmSync(directory, { recursive: true, force: true })
  if (!options.keepFiles) process.once('exit', removeFiles)
  mkdirSync(join(directory, 'logs'), { recursive: true, mode: 0o700 })
  const programs: Program[] = []
  const start = (name: keyof typeof binaries, args: readonly string[]): void => {
    const logFile = join(directory, 'logs', `${name}.log`)
    programs.push(startProgram({ name, path: binaries[name].path, args, logFile }))
  }
  const stop = async (): Promise<void> => {
    for (const program of [...programs].reverse()) await program.stop()
    process.off('exit', removeFiles)
    if (!options.keepFiles) removeFiles()
  }
  try {
    const [clientPort = 0, peerPort = 0, apiPort = 0, managerPort = 0] = await freePorts(4)
    const files = await writeFiles(directory, apiPort, options.podAddress)
    start('etcd', etcdFlags(directory, clientPort, peerPort))
    const ready = { timeoutMs: 240_000, signal: options.signal }
    const startApiserver = async (): Promise<void> => {
      start('kube-apiserver', [
        ...apiserverFlags(files, clientPort, apiPort),
        ...(options.audited ? auditFlags(directory, options.audited) : []),
        ...(options.apiserverFlags ?? []),
      ])
      await untilReady('kube-apiserver', programs, () => isReady(apiPort, '/readyz', files), ready)
    }
    await startApiserver()
    if (options.withControllerManager !== false) {
      start('kube-controller-manager', [...managerFlags(files, managerPort), ...(options.managerFlags ?? [])])
      await untilReady('kube-controller-manager', programs, () => isReady(managerPort, '/healthz', files), ready)
    }
    return {
      kubeconfig: files.kubeconfig,
      url: files.url,
      token: files.token,
      ca: files.ca,
      directory,
      binaries,
      get pids() {
        return Object.fromEntries(programs.map((program) => [program.name, program.pid]))
      },
      async restartApiserver() {
        const index = programs.findIndex(({ name }) => name === 'kube-apiserver')
        await programs[index]?.stop()
        programs.splice(index, 1)
        await startApiserver()
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

interface Files {
  readonly url: string
  readonly token: string
  readonly ca: string
  readonly tls: string
  /** Certificates by which the API server shows itself to a Pod that serves a group. */
  readonly frontProxy: string
  readonly podAddress: string | undefined
  readonly kubeconfig: string
  readonly tokens: string
  readonly serviceAccountKey: string
}

/** First address of the Services' range: the API server itself. */
const serviceAddress = '10.96.0.1'

async function writeFiles(directory: string, apiPort: number, podAddress: string | undefined): Promise<Files> {
  const tls = join(directory, 'tls')
  const material = await ensureCertificates(tls, podAddress ? [podAddress, serviceAddress] : [])
  const frontProxy = join(directory, 'front-proxy')
  await ensureCertificates(frontProxy)
  const token = randomBytes(24).toString('hex')
  const url = `https://127.0.0.1:${apiPort}`
  const secret = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text, { mode: 0o600 })
    return join(directory, name)
  }
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return {
    url,
    token,
    ca: material.ca.cert,
    tls,
    frontProxy,
    podAddress,
    kubeconfig: secret('kubeconfig', kubeconfigFor({ url, tls: material, token })),
    tokens: secret('tokens.csv', `${token},oracle-admin,oracle-admin,"system:masters"\n`),
    serviceAccountKey: secret('service-account.key', privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()),
  }
}

function etcdFlags(directory: string, clientPort: number, peerPort: number): string[] {
  const client = `http://127.0.0.1:${clientPort}`
  const peer = `http://127.0.0.1:${peerPort}`
  return [
    `--data-dir=${join(directory, 'etcd')}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    '--log-level=warn',
  ]
}

function apiserverFlags(files: Files, etcdPort: number, apiPort: number): string[] {
  return [
    `--etcd-servers=http://127.0.0.1:${etcdPort}`,
    `--bind-address=${files.podAddress ? '0.0.0.0' : '127.0.0.1'}`,
    `--advertise-address=${files.podAddress ?? '127.0.0.1'}`,
    ...(files.podAddress ? servedByPods(files) : withoutAccounts),
    `--secure-port=${apiPort}`,
    `--tls-cert-file=${join(files.tls, 'server.crt')}`,
    `--tls-private-key-file=${join(files.tls, 'server.key')}`,
    `--client-ca-file=${join(files.tls, 'ca.crt')}`,
    `--token-auth-file=${files.tokens}`,
    '--authorization-mode=RBAC',
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${files.serviceAccountKey}`,
    `--service-account-signing-key-file=${files.serviceAccountKey}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    '--allow-privileged',
    // Otherwise exec and logs try to resolve the node's name.
    '--kubelet-preferred-address-types=InternalIP',
    `--kubelet-client-certificate=${join(files.tls, 'admin.crt')}`,
    `--kubelet-client-key=${join(files.tls, 'admin.key')}`,
  ]
}

function auditFlags(directory: string, group: string): string[] {
  const policy = join(directory, 'audit-policy.json')
  const rules = [{ level: 'Metadata', userGroups: [group], omitStages: ['RequestReceived'] }, { level: 'None' }]
  writeFileSync(policy, JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules }))
  return [`--audit-policy-file=${policy}`, `--audit-log-path=${join(directory, 'logs', 'audit.log')}`]
}

/** Pods without a way to the API server need no token of it. */
const withoutAccounts = ['--disable-admission-plugins=ServiceAccount']

/** How the API server passes requests on to a Pod that serves a group. */
function servedByPods({ frontProxy }: Files): string[] {
  return [
    `--requestheader-client-ca-file=${join(frontProxy, 'ca.crt')}`,
    `--requestheader-allowed-names=${ADMIN_NAME}`,
    '--requestheader-username-headers=X-Remote-User',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    `--proxy-client-cert-file=${join(frontProxy, 'admin.crt')}`,
    `--proxy-client-key-file=${join(frontProxy, 'admin.key')}`,
    '--enable-aggregator-routing',
  ]
}

function managerFlags(files: Files, port: number): string[] {
  return [
    `--kubeconfig=${files.kubeconfig}`,
    '--leader-elect=false',
    '--bind-address=127.0.0.1',
    `--secure-port=${port}`,
    `--tls-cert-file=${join(files.tls, 'server.crt')}`,
    `--tls-private-key-file=${join(files.tls, 'server.key')}`,
    '--controllers=*,-nodeipam,-node-route-controller,-cloud-node-lifecycle-controller,-service-lb-controller',
    `--service-account-private-key-file=${files.serviceAccountKey}`,
    `--root-ca-file=${join(files.tls, 'ca.crt')}`,
    '--use-service-account-credentials=false',
  ]
}

function isReady(port: number, path: string, { ca, token }: Files): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` }
    const call = request({ host: '127.0.0.1', port, path, ca, headers, agent: false, timeout: 2_000 }, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    call.once('timeout', () => call.destroy(new Error('no answer')))
    call.once('error', reject)
    call.end()
  })
}

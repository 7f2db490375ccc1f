import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  findKubectl,
  type PortForward,
  type ProgramResult,
  portForward,
  runProgram,
  type TaskApi,
  taskApi,
  waitUntil,
} from '@corral/testing'
import { restrictedContainer, restrictedPod } from '../../../packages/cli/src/platform/pod-security.js'

export interface ClusterOptions {
  kubeconfig: string
  namespace: string
  /** Where files go that kubectl reads. */
  directory: string
  /** The image with git and Node that serves repositories. */
  image: string
}

/** A repository that a Pod of the cluster serves. */
export interface ClusterRepository {
  readonly url: string
  /** The text of a file on a branch. */
  show(branch: string, path: string): Promise<string>
  branches(): Promise<string[]>
}

/** Corral in a cluster as a person with kubectl and a token sees it. */
export interface Cluster {
  readonly kubeconfig: string
  readonly namespace: string
  readonly directory: string
  readonly api: TaskApi
  /** Where the API is forwarded to, and the token it takes. */
  where(): { url: string; token: string }
  /** Rejects with what kubectl said. */
  kubectl(...args: string[]): Promise<string>
  call(...args: string[]): Promise<ProgramResult>
  json<T>(...args: string[]): Promise<T>
  apply(...objects: object[]): Promise<string>
  /** Forwards the HTTP API once more: a forward ends with the Pod it led to. */
  connect(): Promise<void>
  /** With these files; a README where left out. */
  repository(files?: Readonly<Record<string, string>>): Promise<ClusterRepository>
  /** Takes the Pod that serves them away. */
  removeRepositories(): Promise<void>
  close(): Promise<void>
}

const repositoryPod = 'corral-e2e-repository'

export function openCluster({ kubeconfig, namespace, directory, image }: ClusterOptions): Cluster {
  const program = findKubectl() ?? 'kubectl'
  let forward: PortForward | undefined
  let token = ''
  let count = 0

  const call: Cluster['call'] = (...args) =>
    runProgram(program, ['--kubeconfig', kubeconfig, '-n', namespace, ...args], { timeoutMs: 300_000 })
  const kubectl: Cluster['kubectl'] = async (...args) => {
    const { code, stdout, stderr } = await call(...args)
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}${stdout}`)
    return stdout
  }
  const apply: Cluster['apply'] = async (...objects) => {
    const file = join(directory, `apply-${++count}.json`)
    writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
    return kubectl('apply', '-f', file)
  }
  const where: Cluster['where'] = () => {
    if (!forward) throw new Error('connect first')
    return { url: forward.url, token }
  }
  const git = (...args: string[]): Promise<string> => kubectl('exec', repositoryPod, '--', 'git', ...args)

  return {
    kubeconfig,
    namespace,
    directory,
    api: taskApi(where),
    where,
    kubectl,
    call,
    json: async <T>(...args: string[]) => JSON.parse(await kubectl(...args, '-o', 'json')) as T,
    apply,
    async connect() {
      await forward?.[Symbol.asyncDispose]()
      const template = 'go-template={{.data.token | base64decode}}'
      token = await kubectl('get', 'secret', 'corral-server', '-o', template)
      forward = await waitUntil('the API is forwarded', () => portForward(kubeconfig, 'service/corral', 80, namespace))
    },
    async repository(files = { 'README.md': 'a repository of the test\n' }) {
      await apply(...repositoryServer(namespace, image))
      await kubectl('wait', '--for=condition=Ready', `pod/${repositoryPod}`, '--timeout=240s')
      const name = `project-${Date.now().toString(36)}-${++count}`
      const bare = `/tmp/served/${name}.git`
      const blobs = Object.entries(files).map(([path, text]) => {
        const encoded = Buffer.from(text).toString('base64')
        return `printf '100644 blob %s\\t${path}\\n' "$(echo ${encoded} | base64 -d | git hash-object -w --stdin)"`
      })
      const script = `set -e; export HOME=/tmp GIT_DIR=${bare}
export GIT_AUTHOR_NAME=e2e GIT_AUTHOR_EMAIL=e2e@corral.invalid GIT_COMMITTER_NAME=e2e GIT_COMMITTER_EMAIL=e2e@corral.invalid
git init -q --bare -b main ${bare}; git config http.receivepack true
tree=$({ ${blobs.join('; ')}; } | git mktree)
git update-ref refs/heads/main "$(git commit-tree -m first "$tree")"`
      await kubectl('exec', repositoryPod, '--', 'sh', '-c', script)
      const address = await kubectl('get', 'pod', repositoryPod, '-o', 'jsonpath={.status.podIP}')
      return {
        url: `http://${address}:9418/${name}.git`,
        show: async (branch, path) => (await git('-C', bare, 'show', `${branch}:${path}`)).trim(),
        branches: async () =>
          (await git('-C', bare, 'for-each-ref', '--format=%(refname:short)', 'refs/heads')).trim().split('\n'),
      }
    },
    async removeRepositories() {
      await call('delete', 'pod,configmap', repositoryPod, '--ignore-not-found')
    },
    async close() {
      await forward?.[Symbol.asyncDispose]()
      forward = undefined
    },
  }
}

function repositoryServer(namespace: string, image: string): object[] {
  const labels = { app: 'corral-test' } // whom the policies let the server fetch from
  return [
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: repositoryPod, namespace },
      data: { 'serve-git.mjs': readFileSync(join(import.meta.dirname, 'serve-git.mjs'), 'utf8') },
    },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: repositoryPod, namespace, labels },
      spec: {
        automountServiceAccountToken: false,
        securityContext: restrictedPod,
        terminationGracePeriodSeconds: 0,
        containers: [
          {
            name: 'git',
            image,
            command: ['node', '/opt/serve/serve-git.mjs'],
            env: [{ name: 'HOME', value: '/tmp' }],
            readinessProbe: { tcpSocket: { port: 9418 }, periodSeconds: 1 },
            securityContext: restrictedContainer,
            volumeMounts: [
              { name: 'program', mountPath: '/opt/serve', readOnly: true },
              { name: 'tmp', mountPath: '/tmp' },
            ],
          },
        ],
        volumes: [
          { name: 'program', configMap: { name: repositoryPod } },
          { name: 'tmp', emptyDir: {} },
        ],
      },
    },
  ]
}

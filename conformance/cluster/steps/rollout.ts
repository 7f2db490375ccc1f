import { deepEqual, doesNotMatch, equal, match, ok } from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { runCorral, waitUntil } from '@corral/testing'
import type { Cluster } from '../harness/cluster.js'
import type { Step } from '../harness/report.js'
import type { Helm } from './install.js'
import { commandTask, succeeded } from './tasks.js'

/** Says when it begins, so that a second beginning would show, and waits for a file. */
const waits = 'echo begun >> begun.txt; until [ -e go ]; do sleep 0.2; done; rm go; echo done > done.txt'
const count = 10

interface ServerPod {
  metadata: { name: string }
  status: { containerStatuses?: { started?: boolean; ready: boolean }[] }
}

interface EndpointSlice {
  endpoints?: { conditions: { ready?: boolean }; targetRef: { name: string } }[] | null
}

/** The server is replaced and lost while tasks run. */
export function rolloutSteps(cluster: Cluster): Step[] {
  const { api, kubectl } = cluster
  const sandboxOf = (id: string) => kubectl('get', 'sandboxclaim', id, '-o', 'jsonpath={.status.sandbox.name}')
  const serverPods = async (): Promise<{ name: string; hasStarted: boolean; isReady: boolean }[]> => {
    const { items } = await cluster.json<{ items: ServerPod[] }>('get', 'pods', '-l', 'app=corral')
    return items.map(({ metadata: { name }, status: { containerStatuses: [server] = [] } }) => ({
      name,
      hasStarted: server?.started === true,
      isReady: server?.ready === true,
    }))
  }
  const begin = async (many: number): Promise<{ ids: string[]; finish(): Promise<string> }> => {
    const repo = await cluster.repository()
    const ids: string[] = []
    for (let index = 0; index < many; index += 1) ids.push(await api.create(commandTask(repo, waits)))
    for (const id of ids) await api.untilPhase(id, 'RUNNING')
    return {
      ids,
      async finish() {
        for (const id of ids) await kubectl('exec', await sandboxOf(id), '--', 'touch', '/workspace/repo/go')
        for (const id of ids) {
          const { branch } = succeeded(await api.untilEnded(id))
          equal(await repo.show(branch!, 'begun.txt'), 'begun', `${id} began once`)
          equal(await repo.show(branch!, 'done.txt'), 'done')
        }
        const pushed = (await repo.branches()).filter((branch) => branch !== 'main')
        equal(pushed.length, many, 'one branch each')
        return `${many} tasks succeeded`
      },
    }
  }
  return [
    {
      title: `a rollout of the server in the middle of ${count} tasks: all succeed, each agent ran once`,
      async run() {
        await cluster.connect()
        const tasks = await begin(count)
        await kubectl('rollout', 'restart', 'deployment/corral-server')
        await kubectl('rollout', 'status', 'deployment/corral-server', '--timeout=240s')
        await cluster.connect()
        for (const id of tasks.ids) equal((await api.get(id)).status, 'RUNNING')
        return tasks.finish()
      },
    },
    {
      title: 'the pod of the server is lost without a word in the middle of three tasks: all succeed',
      async run() {
        const tasks = await begin(3)
        await kubectl('delete', 'pod', '-l', 'app=corral', '--grace-period=0', '--force')
        await kubectl('rollout', 'status', 'deployment/corral-server', '--timeout=240s')
        await cluster.connect()
        return tasks.finish()
      },
    },
    {
      title:
        'a second server by mistake stands by: no Service leads to it, tasks succeed, and it takes over when asked',
      async run() {
        const [first] = await serverPods()
        await kubectl('scale', 'deployment/corral-server', '--replicas=2')
        const second = await waitUntil('the second has started', async () =>
          (await serverPods()).find(({ name, hasStarted }) => hasStarted && name !== first?.name),
        )
        equal(second.isReady, false)
        const ofBroker = ['-l', 'kubernetes.io/service-name=corral-broker']
        const { items } = await cluster.json<{ items: EndpointSlice[] }>('get', 'endpointslices', ...ofBroker)
        const reached = items.flatMap(({ endpoints }) => endpoints ?? []).filter(({ conditions }) => conditions.ready)
        deepEqual(
          reached.map(({ targetRef }) => targetRef.name),
          [first?.name],
        )
        const repo = await cluster.repository()
        const ask = `node -e 'fetch("http://corral-broker:8787/v1/messages").then(r=>console.log(r.status))' > status.txt`
        const tasks = await Promise.all([1, 2, 3].map(() => api.run(commandTask(repo, ask))))
        for (const task of tasks) equal(await repo.show(succeeded(task).branch!, 'status.txt'), '401')
        const running = await begin(1)
        await kubectl('delete', 'pod', first!.name)
        await waitUntil('the second leads', async () =>
          (await serverPods()).some(({ name, isReady }) => isReady && name === second.name),
        )
        await kubectl('scale', 'deployment/corral-server', '--replicas=1')
        await waitUntil('one is left', async () => (await serverPods()).length === 1)
        await kubectl('rollout', 'status', 'deployment/corral-server', '--timeout=240s')
        await cluster.connect()
        return running.finish()
      },
    },
    {
      title: 'the controllers are replaced while three tasks start: all succeed',
      async run() {
        const repo = await cluster.repository()
        const restart = kubectl('rollout', 'restart', 'deployment/corral-controller')
        const ids = await Promise.all([1, 2, 3].map(() => api.create(commandTask(repo, 'echo x > x'))))
        await restart
        for (const id of ids) succeeded(await api.untilEnded(id))
        await kubectl('rollout', 'status', 'deployment/corral-controller', '--timeout=240s')
        return undefined
      },
    },
    {
      title: 'a controller whose port is taken says so and ends, without an uncaught error',
      async run() {
        await using taken = await heldPort()
        const { code, stdout, stderr } = await runCorral(
          [
            'controller',
            '--leader-elect=false',
            '--kubeconfig',
            cluster.kubeconfig,
            `--metrics-bind-address=127.0.0.1:${taken.port}`,
          ],
          { env: { ...process.env }, timeoutMs: 240_000 },
        )
        ok(code !== 0 && code < 128, `it ended with ${code}`)
        match(`${stdout}${stderr}`, new RegExp(`${taken.port}`))
        doesNotMatch(`${stdout}${stderr}`, /ERR_HTTP2|Unhandled|\n\s+at /)
        return undefined
      },
    },
    {
      title: 'the logs of server and controllers hold no stack trace per retry',
      async run() {
        for (const name of ['corral-server', 'corral-controller']) {
          const log = await kubectl('logs', `deployment/${name}`, '--tail=-1')
          const traces = log.split('\n').filter((line) => /^\s+at .*\(|\\n\s+at /.test(line))
          ok(traces.length <= 1, `${name}: ${traces.length} lines with a stack, such as ${traces[0]}`)
          ok(!/MaxListenersExceededWarning/.test(log), `${name} leaks listeners`)
        }
        return undefined
      },
    },
  ]
}

/** The API server makes one for every group of kinds, and the kinds stay. */
const isOfKind = (line: string): boolean =>
  /^apiservice\S*\/v\d\w*\.(corral\.dev|(extensions\.)?agents\.x-k8s\.io)$/.test(line)

async function heldPort(): Promise<AsyncDisposable & { port: number }> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

/** Everything goes, with a task that runs and one that has ended. */
export function uninstallSteps(cluster: Cluster, helm: Helm): Step[] {
  const { api, kubectl, namespace } = cluster
  return [
    {
      title: 'helm uninstall in the middle of a task ends it and leaves no AgentTask, claim, sandbox or finalizer',
      async run() {
        await cluster.connect()
        const repo = await cluster.repository()
        succeeded(await api.run(commandTask(repo, 'echo ended > ended.txt')))
        const id = await api.create(commandTask(repo, waits))
        await api.untilPhase(id, 'RUNNING')
        await cluster.close()
        await helm('uninstall', 'corral', '--wait', '--timeout', '5m')
        equal((await kubectl('get', 'agenttasks', '-o', 'name')).trim(), '')
        equal((await kubectl('get', 'deployments', '-o', 'name')).trim(), '')
        return undefined
      },
    },
    {
      title: 'the namespace goes, and nothing cluster-wide is left but the kinds',
      async run() {
        await kubectl('delete', 'namespace', namespace, '--timeout=240s')
        match((await cluster.call('get', 'namespace', namespace)).stderr, /NotFound/)
        const kinds = 'clusterroles,clusterrolebindings,apiservices'
        const left = (await kubectl('get', kinds, '-o', 'name'))
          .split('\n')
          .filter((line) => /corral|external/.test(line) && !isOfKind(line))
        equal(left.join(), '')
        return undefined
      },
    },
    {
      title: 'corral install does the same without Helm, says what it will do first, and runs a task',
      async run() {
        const corral = (...args: string[]) =>
          runCorral(['install', '--kubeconfig', cluster.kubeconfig, '--namespace', namespace, ...args], {
            env: { ...process.env, HOME: cluster.directory },
            timeoutMs: 300_000,
          })
        const plan = await corral('--dry-run')
        match(plan.stderr, /It will create:[\s\S]*Deployment corral-server/)
        match(plan.stdout, /kind: Deployment/)
        match((await cluster.call('get', 'namespace', namespace)).stderr, /NotFound/)
        const { code, stdout, stderr } = await corral('--yes')
        equal(code, 0, `${stdout}${stderr}`)
        await waitUntil('the API answers', () => cluster.connect().then(() => true))
        const repo = await cluster.repository()
        succeeded(await api.run(commandTask(repo, 'echo x > x')))
        await cluster.close()
        return undefined
      },
    },
    {
      title: 'where the server is gone first, corral server drain lets all that corral install made go, the kinds too',
      async run() {
        await cluster.connect()
        const repo = await cluster.repository()
        const id = await api.create(commandTask(repo, waits))
        await api.untilPhase(id, 'RUNNING')
        await cluster.close()
        await kubectl('delete', 'deployment', 'corral-server', '--timeout=120s')
        const drain = [
          'server',
          'drain',
          '--kubeconfig',
          cluster.kubeconfig,
          '--namespace',
          namespace,
          '--timeout',
          '5',
        ]
        const { code, stdout, stderr } = await runCorral(drain, { env: { ...process.env }, timeoutMs: 240_000 })
        equal(code, 0, `${stdout}${stderr}`)
        const installed = ['install', '--kubeconfig', cluster.kubeconfig, '--namespace', namespace, '--dry-run']
        const objects = await runCorral(installed, { env: { ...process.env, HOME: cluster.directory } })
        equal(objects.code, 0, objects.stderr)
        const file = join(cluster.directory, 'installed.yaml')
        writeFileSync(file, objects.stdout)
        await kubectl('delete', '--ignore-not-found', '--timeout=240s', '-f', file)
        match((await cluster.call('get', 'namespace', namespace)).stderr, /NotFound/)
        const left = await kubectl('get', 'clusterroles,clusterrolebindings,crds', '-o', 'name')
        equal(
          left
            .split('\n')
            .filter((line) => /corral/.test(line))
            .join(),
          '',
        )
        return undefined
      },
    },
  ]
}

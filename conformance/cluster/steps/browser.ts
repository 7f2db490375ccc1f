import { deepEqual, equal, match } from 'node:assert/strict'
import { join } from 'node:path'
import { gitRepository, type PlatformProcess, startPlatformProcess, waitUntil } from '@corral/testing'
import type { Browser, Page } from 'playwright-core'
import { acpAgentSource } from '../../../tests/platform/acp-agent.js'
import { openTab, startBrowser } from '../../../tests/web/browser.js'
import {
  fillName,
  type JourneyStep,
  type JourneyWorld,
  journeyRecord,
  seed002,
  testConnection,
} from '../../../tests/web/seed-002-journey.js'
import type { Cluster } from '../harness/cluster.js'
import type { Step } from '../harness/report.js'
import { templateLike } from './tasks.js'

const reports = join(import.meta.dirname, '../../../docs/reports/seed-002')
const agentFiles = { 'README.md': '# shop\n', 'agent.mjs': acpAgentSource }

/** What is open while a journey is taken. */
interface Sitting {
  browser: Browser
  page: Page
}

/** The steps of a journey, and what ends everything that they opened. */
interface Journey {
  readonly steps: readonly Step[]
  close(): Promise<void>
}

/**
 * Seed 002's hand checks with the real cluster as provider of a `corral up` outside it. `laptop` is the namespace that is
 * meant for it, `cluster` the one of the chart.
 */
export function laptopJourney(cluster: Cluster, laptop: Cluster): Journey {
  const { kubectl, namespace } = laptop
  let platform: PlatformProcess
  let sitting: Sitting
  const chosen = async (page: Page): Promise<void> => {
    await page.getByText('Kubernetes (Agent Sandbox)').click()
    await page.getByLabel('Context', { exact: true }).waitFor()
  }
  const world: JourneyWorld = {
    url: () => platform.url,
    api: () => platform.api,
    signIn: {
      id: 'S2-H1',
      title: 'corral up of a laptop serves the interface',
      async run(page) {
        await page.goto((await platform.corral(['open', '--print'])).stdout.trim())
        await page.getByRole('heading', { name: 'Tasks' }).waitFor()
        return 'opened the link that corral open prints'
      },
    },
    choose: [
      {
        id: 'S2-H2',
        title: 'Settings: Kubernetes (Agent Sandbox) is chosen instead of this machine',
        async run(page) {
          await page.getByRole('link', { name: 'Settings' }).click()
          await page.locator('.provider-card', { hasText: 'This machine' }).getByText('in use').waitFor()
          await chosen(page)
          return 'chose the cluster'
        },
      },
      {
        id: 'S2-H3',
        title: 'context, namespace and runtime class come from the kubeconfig and the real cluster',
        async run(page) {
          const context = page.getByLabel('Context', { exact: true })
          const [name = ''] = (await context.locator('option:not([value=""])').allInnerTexts()).map((text) =>
            text.trim(),
          )
          await context.selectOption(name)
          await page.locator(`option[value="${namespace}"]`).waitFor({ state: 'attached' })
          await page.locator('option[value="gvisor"]').waitFor({ state: 'attached' })
          await fillName(page, 'Namespace', namespace)
          await fillName(page, 'Runtime class', 'kata')
          return `chose the context ${name}, the namespace ${namespace}, typed the runtime class kata`
        },
      },
      {
        id: 'S2-H4-remedies',
        title: 'Test connection, unsaved: what is missing fails by itself and says what to do',
        async run(page) {
          const states = await testConnection(page)
          deepEqual(
            Object.entries(states).filter(([, state]) => state !== 'ok'),
            [
              ['runtime-class', 'fail'],
              ['network-policy', 'warn'],
              ['pools', 'fail'],
              ['sandbox', 'fail'],
            ],
          )
          const said = await page.locator('.checks').innerText()
          match(said, /create RuntimeClass "kata", or choose the default/)
          match(said, /Create a pool/)
          return 'saw that there is no RuntimeClass kata and no pool'
        },
      },
      {
        id: 'S2-H4',
        title: 'Test connection, unsaved: green but for network policies, which this network does not enforce',
        async run(page) {
          await applyPool(cluster, laptop)
          await page.getByRole('button', { name: 'Choose from the list: runtime class' }).click()
          await page.getByLabel('Runtime class', { exact: true }).selectOption('')
          const states = await testConnection(page)
          deepEqual(
            Object.entries(states).filter(([, state]) => state !== 'ok'),
            [['network-policy', 'warn']],
          )
          return page.getByText('of 10 passed').innerText()
        },
      },
      {
        id: 'S2-H2-saved',
        title: 'saved, and in use after the next start',
        async run(page) {
          await page.getByRole('button', { name: 'Save' }).click()
          await page.getByText('The next start of the platform uses what is saved').waitFor()
          await platform.stop()
          await platform.restart()
          await page.goto(`${platform.url}/settings`)
          await page.locator('.provider-card.is-chosen', { hasText: 'Kubernetes' }).getByText('in use').waitFor()
          return 'saved the settings and started the platform again'
        },
      },
    ],
    repository: async () => (await gitRepository(`${platform.directory}/shop`, agentFiles)).path,
    sandboxes: () => sandboxesIn(laptop),
  }
  const steps: Step[] = [
    {
      title: 'a laptop’s corral up and a real browser, with the real cluster in its kubeconfig',
      async run() {
        await kubectl('create', 'namespace', namespace)
        await kubectl('label', 'namespace', namespace, 'pod-security.kubernetes.io/enforce=restricted')
        platform = await startPlatformProcess({ args: ['--warm', '0'], env: { KUBECONFIG: cluster.kubeconfig } })
        sitting = await sitDown(() => platform.url)
        return `Chromium ${sitting.browser.version()}, isolation at home ${platform.isolation}`
      },
    },
    ...recorded('laptop', seed002(world), () => sitting),
    {
      title: 'the laptop leaves nothing in the cluster but the pool that it made for its tasks',
      async run() {
        equal(await kubectl('get', 'sandboxclaims', '-o', 'name'), '')
        return kubectl('get', 'sandboxwarmpools', '-o', 'name')
      },
    },
  ]
  return {
    steps,
    async close() {
      await sitting?.browser.close()
      await platform?.[Symbol.asyncDispose]()
      // Before the namespace: controllers that refill a pool in one that goes are refused, and the audit is looked at.
      await laptop.call('delete', 'sandboxwarmpools,sandboxclaims,sandboxtemplates', '--all')
      await waitUntil('the sandboxes are gone', async () => (await sandboxesIn(laptop)).length === 0)
      await laptop.call('delete', 'namespace', namespace, '--ignore-not-found')
    },
  }
}

/** The same with the `corral server` that the chart installed, which knows its cluster and has no rights outside its namespace. */
export function serverJourney(cluster: Cluster, runtimeClass: string | undefined): Journey {
  let sitting: Sitting
  const world: JourneyWorld = {
    url: () => cluster.where().url,
    api: () => cluster.api,
    signIn: {
      id: 'S2-H1',
      title: 'the server of the chart serves the interface, and the token of its Secret signs in',
      async run(page) {
        await page.goto(`${cluster.where().url}/`)
        await page.getByLabel('Token').fill(cluster.where().token)
        await page.getByRole('button', { name: 'Sign in' }).click()
        await page.getByRole('heading', { name: 'Tasks' }).waitFor()
        return 'signed in with the token of the Secret corral-server'
      },
    },
    choose: [
      {
        id: 'S2-H2',
        title: 'Settings: its cluster is in use, and cannot be taken from it',
        async run(page) {
          await page.getByRole('link', { name: 'Settings' }).click()
          await page.locator('.provider-card.is-chosen', { hasText: 'Kubernetes' }).getByText('in use').waitFor()
          await page.getByText('This server was given its cluster when it was started').waitFor()
          return 'saw that the server runs in its cluster'
        },
      },
      {
        id: 'S2-H3',
        title: 'the runtime class is typed, because the server may not list them',
        async run(page) {
          await page.getByText('Cannot be listed; type it.', { exact: false }).waitFor()
          if (runtimeClass !== undefined) await page.getByLabel('Runtime class', { exact: true }).fill(runtimeClass)
          return `typed the runtime class ${runtimeClass ?? 'of the nodes'}`
        },
      },
      {
        id: 'S2-H4',
        title: 'Test connection: nothing fails; what the server may not look at needs attention and says so',
        async run(page) {
          const states = await testConnection(page)
          deepEqual(
            Object.entries(states).filter(([, state]) => state !== 'ok'),
            [
              ['namespace', 'warn'],
              ...(runtimeClass === undefined ? [] : [['runtime-class', 'warn']]),
              ['network-policy', 'warn'],
            ],
          )
          match(await page.locator('.checks').innerText(), /Ask for the permission to look, or ignore this/)
          return page.getByText('of 10 passed').innerText()
        },
      },
      {
        id: 'S2-H3-saved',
        title: 'the runtime class is saved, and holds for the next task',
        async run(page) {
          if (runtimeClass === undefined) return 'kept the runtime class of the nodes'
          await page.getByRole('button', { name: 'Save' }).click()
          await page.getByText('Settings are saved').waitFor()
          return `saved the runtime class ${runtimeClass}`
        },
      },
    ],
    repository: async () => (await cluster.repository(agentFiles)).url,
    sandboxes: () => sandboxesIn(cluster),
  }
  const steps: Step[] = [
    {
      title: 'a real browser at the server of the chart',
      async run() {
        await cluster.connect()
        if (runtimeClass !== undefined) await applyRuntimePool(cluster, runtimeClass)
        sitting = await sitDown(() => cluster.where().url)
        return `Chromium ${sitting.browser.version()}`
      },
    },
    ...recorded('server', seed002(world), () => sitting),
  ]
  return {
    steps,
    /** The steps that follow find the server as it was. */
    async close() {
      await sitting?.browser.close()
      if (!sitting) return
      await cluster.api.request('PATCH', '/settings', { body: { runtime_class: null } })
      await cluster.api.request('DELETE', '/projects/shop')
      if (runtimeClass !== undefined)
        await cluster.call('delete', 'sandboxwarmpool', runtimeClass, '--ignore-not-found')
    },
  }
}

async function sitDown(url: () => string): Promise<Sitting> {
  const browser = await startBrowser()
  const { page } = await openTab(browser, { url: url() }, { colorScheme: 'light' })
  page.setDefaultTimeout(120_000)
  // High enough for all rows of a connection test.
  await page.setViewportSize({ width: 1280, height: 1080 })
  return { browser, page }
}

function recorded(name: string, steps: readonly JourneyStep[], sitting: () => Sitting): Step[] {
  const record = journeyRecord(join(reports, name))
  return steps.map((step) => ({
    title: `${step.id} in a browser, ${name}: ${step.title}`,
    run: () => record(sitting().page, step),
  }))
}

async function sandboxesIn(cluster: Cluster): Promise<string[]> {
  const names = await cluster.kubectl('get', 'sandboxes', '-o', 'name')
  return names
    .split('\n')
    .filter(Boolean)
    .map((line) => line.slice(line.indexOf('/') + 1))
}

/** What an operator gives a namespace for people: the template of the chart, and one sandbox of it kept ready. */
async function applyPool(cluster: Cluster, { namespace, apply, kubectl }: Cluster): Promise<void> {
  const template = await templateLike(cluster, 'default', {})
  await apply({ ...template, metadata: { name: 'default', namespace } }, poolOf('default', namespace))
  await kubectl('wait', ...untilFull('default'))
}

async function applyRuntimePool(cluster: Cluster, runtimeClassName: string): Promise<void> {
  const template = await templateLike(cluster, runtimeClassName, {}, { runtimeClassName })
  await cluster.apply(template, poolOf(runtimeClassName, cluster.namespace))
  await cluster.kubectl('wait', ...untilFull(runtimeClassName))
}

const untilFull = (pool: string): string[] => [
  '--for=jsonpath={.status.readyReplicas}=1',
  `sandboxwarmpool/${pool}`,
  '--timeout=240s',
]

function poolOf(name: string, namespace: string): object {
  return {
    apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
    kind: 'SandboxWarmPool',
    metadata: { name, namespace },
    spec: { replicas: 1, sandboxTemplateRef: { name } },
  }
}

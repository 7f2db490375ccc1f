import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createApiServer, memoryStorage, serveHttps } from '@corral/apiserver'
import { Namespaces, RuntimeClasses } from '@corral/resources'
import { type PlatformProcess, startPlatformProcess, temporaryDirectory } from '@corral/testing'
import { dump, load } from 'js-yaml'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chromiumPath, openTab, signIn, startBrowser } from './browser.js'
import { fillName, testConnection } from './seed-002-journey.js'

interface KubeConfig {
  clusters: { name: string; cluster: Record<string, unknown> }[]
  users: { name: string; user: Record<string, unknown> }[]
  contexts: { name: string; context: { cluster: string; user: string; namespace?: string } }[]
  'current-context': string
}

/** Settings › Sandboxes against clusters that are real, and each wrong in one way. */
describe.skipIf(!chromiumPath)('the connection test in a browser', () => {
  const scratch = temporaryDirectory()
  const kubeconfig = join(scratch.path, 'kubeconfig')
  const closing: (() => Promise<unknown>)[] = []
  let platform: PlatformProcess
  let page: Page
  beforeAll(async () => {
    writeFileSync(kubeconfig, 'apiVersion: v1\nkind: Config\n')
    platform = await startPlatformProcess({ env: { KUBECONFIG: kubeconfig } })
    closing.push(async () => platform[Symbol.asyncDispose]())
    // Without the kinds of Agent Sandbox.
    const bare = await createApiServer({ storage: memoryStorage(), crds: [] })
    const https = await serveHttps({ server: bare, port: 0, dataDir: join(scratch.path, 'bare') })
    closing.push(
      () => https.close(),
      () => bare.close(),
    )
    writeContexts(https)
    const kube = await platform.kube()
    await kube.create(Namespaces, { metadata: { name: 'empty' } })
    await kube.create(RuntimeClasses, { metadata: { name: 'gvisor' }, handler: 'runsc' })
    const browser: Browser = await startBrowser()
    closing.push(() => browser.close())
    const tab = await openTab(browser, platform)
    page = tab.page
    await signIn(tab, platform)
  })
  afterAll(async () => {
    for (const close of closing.reverse()) await close()
    await scratch[Symbol.asyncDispose]()
  })

  /** The platform's own cluster, without its credentials, at a port where nothing listens, and another without our kinds. */
  function writeContexts(bare: Awaited<ReturnType<typeof serveHttps>>): void {
    const own = load(readFileSync(platform.kubeconfig, 'utf8')) as KubeConfig
    const [cluster, user] = [own.clusters[0]?.cluster ?? {}, own.users[0]?.user ?? {}]
    const config: KubeConfig = {
      clusters: [
        { name: 'good', cluster },
        { name: 'gone', cluster: { ...cluster, server: 'https://127.0.0.1:9' } },
        { name: 'bare', cluster: { server: bare.url, 'insecure-skip-tls-verify': true } },
      ],
      users: [
        { name: 'good', user },
        { name: 'stranger', user: { token: 'nobody-knows-this-token' } },
        { name: 'bare', user: { token: bare.token } },
      ],
      contexts: [
        { name: 'good', context: { cluster: 'good', user: 'good', namespace: 'corral' } },
        { name: 'gone', context: { cluster: 'gone', user: 'good' } },
        { name: 'stranger', context: { cluster: 'good', user: 'stranger', namespace: 'corral' } },
        { name: 'bare', context: { cluster: 'bare', user: 'bare', namespace: 'default' } },
      ],
      'current-context': 'good',
    }
    writeFileSync(kubeconfig, dump({ apiVersion: 'v1', kind: 'Config', ...config }))
  }

  const openSettings = async (): Promise<void> => {
    await page.goto(`${platform.url}/settings`)
    await page.locator('.provider-card').first().waitFor()
  }
  const runTest = (): Promise<Record<string, string>> => testConnection(page)

  it('S2-M1 S2-D4: this machine is in use, and every check of it is green on its own', async () => {
    await openSettings()
    const states = await runTest()
    expect(Object.keys(states)).toEqual([
      'api',
      'auth',
      'namespace',
      'kinds',
      'controller',
      'permissions',
      'runtime-class',
      'network-policy',
      'pools',
      'sandbox',
    ])
    expect(new Set(Object.values(states))).toEqual(new Set(['ok']))
  })

  it.each<[string, { context: string; namespace?: string; runtime?: string }, Record<string, string>, RegExp]>([
    [
      'a cluster that does not answer',
      { context: 'gone' },
      { api: 'fail', namespace: 'skipped' },
      /Check that the cluster runs/,
    ],
    ['credentials that are refused', { context: 'stranger' }, { api: 'ok', auth: 'fail' }, /Renew the credentials/],
    [
      'a namespace that is not there',
      { context: 'good', namespace: 'nowhere' },
      { auth: 'ok', namespace: 'fail', kinds: 'ok' },
      /Create namespace "nowhere"/,
    ],
    [
      'a cluster without our kinds',
      { context: 'bare' },
      { auth: 'ok', kinds: 'fail', controller: 'fail' },
      /Install the controller with its CRDs/,
    ],
    [
      'a runtime class that is not there',
      { context: 'good', runtime: 'kata' },
      { kinds: 'ok', 'runtime-class': 'fail' },
      /RuntimeClass "kata"/,
    ],
    [
      'a namespace without a pool',
      { context: 'good', namespace: 'empty' },
      { namespace: 'ok', pools: 'fail', sandbox: 'fail' },
      /Create a pool/,
    ],
  ])('S2-H4: %s fails its own check alone and says what to do', async (_, chosen, expected, remedy) => {
    await openSettings()
    await page.getByText('Kubernetes (Agent Sandbox)').click()
    await page.getByLabel('Context', { exact: true }).selectOption(chosen.context)
    if (chosen.namespace) await fill('Namespace', chosen.namespace)
    if (chosen.runtime) await fill('Runtime class', chosen.runtime)
    expect(await runTest()).toMatchObject(expected)
    expect(await page.locator('.checks').innerText()).toMatch(remedy)
  })

  const fill = (label: string, value: string): Promise<void> => fillName(page, label, value)

  it('S2-H2 S2-H3 S2-I15: a cluster, its namespace and runtime class are chosen, tested before they are saved, and survive a reload', async () => {
    await openSettings()
    await page.getByText('Kubernetes (Agent Sandbox)').click()
    await page.getByLabel('Context', { exact: true }).selectOption('good')
    await fill('Namespace', 'corral')
    await fill('Runtime class', 'gvisor')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Settings are saved').waitFor()
    await page.getByText('The next start of the platform uses what is saved').waitFor()
    await page.reload()
    await page.locator('.provider-card.is-chosen', { hasText: 'Kubernetes' }).waitFor()
    // Before the contexts are listed, too.
    expect(await page.getByLabel('Context', { exact: true }).inputValue()).toBe('good')
    expect(JSON.parse(readFileSync(join(platform.dataDir, 'settings.json'), 'utf8'))).toEqual({
      provider: 'kubernetes',
      context: 'good',
      namespace: 'corral',
      runtime_class: 'gvisor',
    })
    await page.locator('.provider-card', { hasText: 'This machine' }).click()
    await page.getByLabel('Runtime class', { exact: true }).selectOption('')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The next start of the platform uses').waitFor({ state: 'detached' })
  })
})

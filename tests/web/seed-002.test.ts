import { Sandboxes } from '@corral/resources'
import { gitRepository, type PlatformProcess, startPlatformProcess } from '@corral/testing'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { acpAgentSource } from '../platform/acp-agent.js'
import { chromiumPath, openTab, startBrowser } from './browser.js'
import { journeyRecord, seed002 } from './seed-002-journey.js'

/**
 * The hand checks of the second seed, one after the other, on the embedded platform. `npm run e2e:cluster` takes the same
 * journey with a real cluster as provider.
 */
describe.skipIf(!chromiumPath)('the hand checks of seed 002, in one sitting', () => {
  let platform: PlatformProcess
  let browser: Browser
  let page: Page
  const record = journeyRecord('test-report/seed-002')
  beforeAll(async () => {
    browser = await startBrowser()
    platform = await startPlatformProcess()
    page = (await openTab(browser, platform)).page
  })
  afterAll(async () => {
    await browser?.close()
    await platform?.[Symbol.asyncDispose]()
  })

  const steps = seed002({
    url: () => platform.url,
    api: () => platform.api,
    signIn: {
      id: 'S2-H1',
      title: 'corral up serves the interface, without a second process',
      async run() {
        const { stdout } = await platform.corral(['open', '--print'])
        expect(stdout.trim()).toMatch(new RegExp(`^${platform.url}/login#`))
        await page.goto(stdout.trim())
        await page.getByRole('heading', { name: 'Tasks' }).waitFor()
        return 'opened the link that corral open prints'
      },
    },
    choose: [
      {
        id: 'S2-H2',
        title: 'Settings name the provider, and which one is in use',
        async run() {
          await page.getByRole('link', { name: 'Settings' }).click()
          await page.locator('.provider-card', { hasText: 'This machine' }).getByText('in use').waitFor()
          await page.getByText('Kubernetes (Agent Sandbox)').click()
          await page.getByLabel('Context', { exact: true }).waitFor()
          return 'looked at both providers'
        },
      },
      {
        id: 'S2-H3',
        title: 'context, namespace and runtime class can be given',
        async run() {
          await page.getByLabel('Namespace', { exact: true }).waitFor()
          await page.getByLabel('Runtime class', { exact: true }).waitFor()
          await page.getByText('This machine').click()
          await page.getByLabel('Context', { exact: true }).waitFor({ state: 'detached' })
          return 'went back to this machine'
        },
      },
      {
        id: 'S2-H4',
        title: 'Test connection: every check is green on its own',
        async run() {
          await page.getByRole('button', { name: 'Test connection' }).click()
          await page.getByText('ran /bin/true, given back').waitFor()
          await page.getByText('10 of 10 passed').waitFor()
          return 'tested the connection'
        },
      },
    ],
    repository: async () => (await gitRepository(`${platform.directory}/shop`, { 'agent.mjs': acpAgentSource })).path,
    sandboxes: async () => {
      const { items } = await (await platform.kube()).list(Sandboxes, { namespace: 'corral' })
      return items.map(({ metadata }) => metadata.name)
    },
  })

  it.each(steps.map((step) => ({ step, title: `${step.id}: ${step.title}` })))('$title', async ({ step }) => {
    await record(page, step)
  })
})

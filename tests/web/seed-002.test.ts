import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Sandboxes } from '@corral/resources'
import { gitRepository, type PlatformProcess, startPlatformProcess, waitUntil } from '@corral/testing'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { acpAgent, acpAgentSource } from '../platform/acp-agent.js'
import { chromiumPath, openTab, startBrowser } from './browser.js'

/** Where the record of the journey goes: a line and a picture for each step. */
const record = 'test-report/seed-002'

/** The hand checks of the second seed, one after the other, on the embedded platform. */
describe.skipIf(!chromiumPath)('the hand checks of seed 002, in one sitting', () => {
  let platform: PlatformProcess
  let browser: Browser
  let page: Page
  let task = ''
  const steps: { id: string; did: string; at: string }[] = []
  const note = async (id: string, did: string): Promise<void> => {
    steps.push({ id, did, at: new Date().toISOString() })
    await page.screenshot({ path: join(record, `${id}.png`), animations: 'disabled' })
    writeFileSync(join(record, 'journey.json'), `${JSON.stringify(steps, null, 2)}\n`)
  }
  beforeAll(async () => {
    mkdirSync(record, { recursive: true })
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await platform?.[Symbol.asyncDispose]()
  })

  it('S2-H1: corral up serves the interface, without a second process', async () => {
    platform = await startPlatformProcess()
    const tab = await openTab(browser, platform)
    page = tab.page
    const { stdout } = await platform.corral(['open', '--print'])
    expect(stdout.trim()).toMatch(new RegExp(`^${platform.url}/login#`))
    await page.goto(stdout.trim())
    await page.getByRole('heading', { name: 'Tasks' }).waitFor()
    await note('S2-H1', 'opened the link that corral open prints')
  })

  it('S2-H2: Settings name the provider, and which one is in use', async () => {
    await page.getByRole('link', { name: 'Settings' }).click()
    await page.locator('.provider-card', { hasText: 'This machine' }).getByText('in use').waitFor()
    await page.getByText('Kubernetes (Agent Sandbox)').click()
    await page.getByLabel('Context', { exact: true }).waitFor()
    await note('S2-H2', 'looked at both providers')
  })

  it('S2-H3: context, namespace and runtime class can be given', async () => {
    await page.getByLabel('Namespace', { exact: true }).waitFor()
    await page.getByLabel('Runtime class', { exact: true }).waitFor()
    await page.getByText('This machine').click()
    await page.getByLabel('Context', { exact: true }).waitFor({ state: 'detached' })
    await note('S2-H3', 'went back to this machine')
  })

  it('S2-H4: Test connection: every check is green on its own', async () => {
    await page.getByRole('button', { name: 'Test connection' }).click()
    await page.getByText('ran /bin/true, given back').waitFor()
    await page.getByText('10 of 10 passed').waitFor()
    await note('S2-H4', 'tested the connection')
  })

  it('S2-H5: a project is made for a repository', async () => {
    const repo = await gitRepository(`${platform.directory}/shop`, { 'agent.mjs': acpAgentSource })
    await page.getByRole('link', { name: 'Projects' }).click()
    await page.locator('.empty').waitFor()
    await page.keyboard.press('n')
    await page.getByLabel('Name', { exact: true }).fill('shop')
    await page.getByLabel('Repository').fill(repo.path)
    await page.getByRole('button', { name: 'Create project' }).click()
    await page.waitForURL(`${platform.url}/projects/shop`)
    await note('S2-H5', 'made the project shop')
  })

  it('S2-H6: a task of it goes to Working, because its agent starts', async () => {
    task = await platform.api.create({ project: 'shop', task: 'the work', agent: acpAgent, mode: 'plan' })
    await page.goto(`${platform.url}/?view=board&project=shop`)
    await page.locator('.card', { hasText: 'the work' }).waitFor()
    await page.locator('.column.group-needs-you .card', { hasText: 'the work' }).waitFor()
    await note('S2-H6', 'watched the card of the task')
  })

  it('S2-H8: kubectl get sandboxes shows its sandbox, as the page does', async () => {
    const { items } = await (await platform.kube()).list(Sandboxes, { namespace: 'corral' })
    const { sandbox } = await platform.api.get(task)
    expect(items.map(({ metadata }) => metadata.name)).toContain(sandbox?.name)
    await page.goto(`${platform.url}/sandboxes`)
    await page
      .getByText(sandbox?.name ?? '')
      .first()
      .waitFor()
    await note('S2-H8', 'compared the page with the Kubernetes API')
  })

  it('S2-H7: the plan is read, approved and carried out', async () => {
    await page.goto(`${platform.url}/tasks/${task}`)
    await page.locator('.plan-card').waitFor()
    await page.getByRole('button', { name: 'Approve and run' }).click()
    await page.locator('.result-card').waitFor()
    await waitUntil('the branch is pushed', async () => (await platform.api.get(task)).branch !== undefined)
    await note('S2-H7', 'approved the plan and saw the branch')
  })
})

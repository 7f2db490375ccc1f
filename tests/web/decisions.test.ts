import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type CreateTaskRequest, TasksClient, type TaskView } from '@corral/protocol'
import { gitRepository, type PlatformProcess, startPlatformProcess, waitUntil } from '@corral/testing'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { acpAgent, acpAgentSource } from '../platform/acp-agent.js'
import { askingAgent, askingAgentSource } from '../platform/asking-agent.js'
import { chromiumPath, openTab, signIn, startBrowser, type Tab } from './browser.js'

/** What people decide in a browser, with agents that plan and ask, on a real platform. */
describe.skipIf(!chromiumPath)('decisions in a browser', () => {
  let platform: PlatformProcess
  let browser: Browser
  let tab: Tab
  let page: Page
  beforeAll(async () => {
    platform = await startPlatformProcess()
    browser = await startBrowser()
    tab = await openTab(browser, platform)
    page = tab.page
    await signIn(tab, platform)
  })
  afterAll(async () => {
    await browser?.close()
    await platform?.[Symbol.asyncDispose]()
  })

  const create = async (name: string, source: string, request: Omit<CreateTaskRequest, 'repo'>): Promise<string> => {
    const repo = await gitRepository(`${platform.directory}/${name}`, { 'agent.mjs': source, 'cart.txt': 'one\ntwo\n' })
    return platform.api.create({ repo: repo.path, ...request })
  }
  const open = async (id: string, wait: string): Promise<void> => {
    await page.goto(`${platform.url}/tasks/${id}`)
    await page.locator(wait).first().waitFor()
  }
  const idIn = (url: string): string => /task-[a-z0-9]+/.exec(url)?.[0] ?? ''
  const isEnded = ({ times }: TaskView): boolean => times?.finished_at !== undefined

  it('S2-H7: a plan is remarked on, revised and approved; whoever approves an old revision is told so', async () => {
    const id = await create('planned', acpAgentSource, { task: 'the work', agent: acpAgent, mode: 'plan' })
    await open(id, '.plan-card')
    const other = await openTab(browser, platform)
    await signIn(other, platform)
    // The other one does not hear of the revision: its approval is of the plan it shows.
    await other.page.routeWebSocket(/\/stream/, (socket) => {
      const server = socket.connectToServer()
      let isDeaf = false
      server.onMessage((message) => {
        isDeaf ||= String(message).includes('"WAITING_APPROVAL"')
        socket.send(message)
        if (isDeaf) server.onMessage(() => undefined)
      })
    })
    await other.page.goto(`${platform.url}/tasks/${id}`)
    await other.page.locator('.plan-card').waitFor()

    await page.getByRole('button', { name: 'Ask for changes' }).click()
    await page.getByLabel('What should be different').fill('smaller, please')
    await page.getByRole('button', { name: 'Send to the agent' }).click()
    await page.locator('.plan-card', { hasText: 'smaller, please' }).waitFor()

    await other.page.getByRole('button', { name: 'Approve and run' }).click()
    await other.page.locator('.toast.is-error', { hasText: 'revision' }).waitFor()
    await other.context.close()

    await page.keyboard.press('a')
    await page.locator('.result-card').waitFor()
    expect(await platform.api.get(id)).toMatchObject({ status: 'SUCCEEDED', plan: { revision: 2, verdict: 'approve' } })
  })

  it('a question is answered with one of its options, and the agent goes on with it', async () => {
    const id = await create('asking', askingAgentSource, { task: 'ask', agent: askingAgent, ask: 'always' })
    await open(id, '.question-card')
    const card = page.locator('.question-card')
    expect(await card.innerText()).toContain('Write chosen.txt')
    expect(await page.title()).toBe('(1) Corral')
    await card.getByRole('button', { name: 'Allow' }).click()
    await page.locator('.result-card').waitFor()
    expect((await platform.api.get(id)).questions).toMatchObject([{ id: 'q1', outcome: 'answered' }])
  })

  it('a question that somebody else answered says so', async () => {
    const id = await create('asking-two', askingAgentSource, { task: 'ask', agent: askingAgent, ask: 'always' })
    await open(id, '.question-card')
    // The answer of another user reaches the platform first.
    await page.route(`**/tasks/${id}/answers`, async (route) => {
      await platform.api.request('POST', `/tasks/${id}/answers`, { body: { question: 'q1', option: 'no' } })
      await route.continue()
    })
    await page.locator('.question-card').getByRole('button', { name: 'Allow' }).click()
    await page.locator('.toast.is-error').waitFor()
    await page.locator('.question-card').waitFor({ state: 'detached' })
    await page.unroute(`**/tasks/${id}/answers`)
  })

  it('an agent that runs is told something while it works', async () => {
    const id = await create('steered', askingAgentSource, { task: 'wait', agent: askingAgent, ask: 'always' })
    await platform.api.untilPhase(id, 'RUNNING')
    await open(id, '.composer')
    await page.locator('.composer textarea').fill('also mind the tests')
    await page.keyboard.press('Control+Enter')
    await waitUntil('the message is kept', async () =>
      ((await platform.api.get(id)).messages ?? []).some(({ task }) => task === 'also mind the tests'),
    )
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Cancel' }).click()
    await platform.api.untilEnded(id)
  })

  it.each([
    { what: 'that fails', command: 'echo broken >&2; exit 3', more: {}, code: 'AgentFailed', says: 'broken' },
    {
      what: 'that takes too long',
      command: 'echo slow; sleep 900',
      more: { timeout_seconds: 2 },
      code: 'Timeout',
      says: 'longer than 2 s',
    },
  ])(
    'a task $what shows its cause, what to do and its last lines, and runs again',
    async ({ command, more, code, says }) => {
      const id = await create(`failing-${code}`, '', { task: 'Fail', agent: { name: 'command', command }, ...more })
      await platform.api.untilEnded(id)
      await open(id, '.failure-card')
      // The cause is in the task; its last lines and the stage it failed in come with its log.
      await page.locator('.failure-card', { hasText: says }).waitFor()
      expect(await page.locator('.failure-card').innerText()).toContain(code)
      if (code === 'AgentFailed') await page.locator('.stage.is-failed').waitFor()
      await page.keyboard.press('r')
      await page.waitForURL((url) => url.pathname.startsWith('/tasks/') && idIn(url.pathname) !== id)
      expect((await platform.api.get(idIn(page.url()))).retry_of).toBe(id)
      await page.locator('.failure-card').waitFor()
    },
  )

  it('a task is cancelled, and its work so far can be reviewed', async () => {
    const command = 'echo three >> cart.txt; git add -A; git commit -qm three; echo committed; sleep 900'
    const id = await create('cancelled', '', { task: 'Take long', agent: { name: 'command', command } })
    await open(id, '.entry-output')
    await page.getByText('committed').waitFor()
    await page.keyboard.press('x')
    await page.getByText('The task ends; its work so far is kept').waitFor()
    await page.locator('.failure-card.is-quiet').waitFor()
    await page.getByRole('link', { name: 'Review what was done' }).click()
    await page.locator('.line.is-added', { hasText: 'three' }).first().waitFor()
  })

  it('a range of lines is remarked on in Review, kept as a draft, and sent as one follow-up on the branch', async () => {
    const command = 'printf "three\\nfour\\n" >> cart.txt; mkdir -p a/b && echo new > a/b/c.txt'
    const id = await create('reviewed', '', { task: 'Extend the cart', agent: { name: 'command', command } })
    await platform.api.untilEnded(id)
    await page.goto(`${platform.url}/review?task=${id}`)
    await page.locator('.file-tree .folder', { hasText: 'a/b' }).waitFor()
    const file = page.locator('.file-diff', { hasText: 'cart.txt' })
    await file.locator('.line.is-added .add-comment').last().click()
    await page.getByLabel('From line').fill('3')
    await page.getByPlaceholder('What should the agent change here?').fill('In capitals, both')
    await page.getByRole('button', { name: 'Keep comment' }).click()
    await page.getByLabel('Viewed').first().check()
    await page.reload()
    await page.locator('.comment', { hasText: 'lines 3 to 4' }).waitFor()
    expect(await page.getByLabel('Viewed').first().isChecked()).toBe(true)
    await page.keyboard.press('m')
    await page.getByText(`corral task apply ${id}`).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Send to the agent' }).click()
    await page.waitForURL((url) => url.pathname.startsWith('/tasks/') && idIn(url.pathname) !== id)
    const next = await platform.api.get(idIn(page.url()))
    expect(next.continues).toBe(id)
    expect(next.task).toContain('cart.txt:3-4')
    expect(next.task).toContain('  > three\n  > four\n  In capitals, both')
    await waitUntil('the follow-up ends', async () => isEnded(await platform.api.get(next.id)))
  })

  it('a change is merged into the work tree it came from; one with changes of its own is refused and stays', async () => {
    const command = 'echo three >> cart.txt'
    const id = await create('home', '', { task: 'Extend', agent: { name: 'command', command } })
    await platform.api.untilEnded(id)
    const [cart, mine] = [`${platform.directory}/home/cart.txt`, `${platform.directory}/home/mine.txt`]
    writeFileSync(mine, 'mine\n')
    await page.goto(`${platform.url}/review?task=${id}`)
    await page.locator('.file-diff').first().waitFor()
    await page.keyboard.press('m')
    const merge = page.getByRole('button', { name: /^Merge into/ })
    await merge.click()
    await page.locator('.take-home .problem', { hasText: '1 file not committed' }).waitFor()
    expect(readFileSync(cart, 'utf8')).toBe('one\ntwo\n')
    rmSync(mine)
    await merge.click()
    await page.locator('.toast', { hasText: 'Merged into' }).waitFor()
    expect(readFileSync(cart, 'utf8')).toBe('one\ntwo\nthree\n')
  })

  it('limits that were saved hold for the next task, and a change of somebody else is not written over', async () => {
    await page.goto(`${platform.url}/settings/limits`)
    await page.getByLabel('Time of a task, in minutes').fill('7')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Settings are saved').waitFor()
    const id = await create('limited', '', { task: 'Say hello', agent: { name: 'command', command: 'true' } })
    expect((await platform.api.get(id)).timeout_seconds).toBe(420)
    await new TasksClient({ baseUrl: platform.url, token: platform.token }).settings.change({ max_tokens: 5000 })
    await page.getByLabel('Time of a task, in minutes').fill('9')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The settings were changed elsewhere').waitFor()
    await page.getByRole('button', { name: 'Show them as they are now' }).click()
    await waitUntil(
      'it shows the other change',
      async () => (await page.getByLabel('Tokens of a task').inputValue()) === '5000',
    )
    await new TasksClient({ baseUrl: platform.url, token: platform.token }).settings.change({
      max_tokens: null,
      timeout_seconds: null,
    })
  })

  it('eight tabs all live, and each shows the next task', async () => {
    const pages = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const next = await tab.context.newPage()
        await next.goto(`${platform.url}/`)
        await next.locator('.row').first().waitFor()
        return next
      }),
    )
    await create('tabs', '', { task: 'Seen by eight', agent: { name: 'command', command: 'true' } })
    for (const next of pages) await next.locator('.row', { hasText: 'Seen by eight' }).waitFor()
    for (const next of pages) await next.close()
  })
})

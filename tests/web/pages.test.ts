import { TasksClient } from '@corral/protocol'
import { gitRepository, type PlatformProcess, startPlatformProcess, waitUntil } from '@corral/testing'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { accessibilityProblems, chromiumPath, isExpected, openTab, signIn, startBrowser, type Tab } from './browser.js'

const evil = '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>'

describe.skipIf(!chromiumPath)('in a browser, page by page', () => {
  let platform: PlatformProcess
  let browser: Browser
  let tab: Tab
  let group = ''
  let ids: Record<'done' | 'failed' | 'running' | 'evil', string>
  beforeAll(async () => {
    platform = await startPlatformProcess()
    browser = await startBrowser()
    const shop = await gitRepository(`${platform.directory}/shop`, {
      'src/cart.ts': cart,
      'README.md': '# shop\n\nA cart, its totals, and nothing else.\n',
    })
    const create = (task: string, command: string, more: object = {}): Promise<string> =>
      platform.api.create({ repo: shop.path, task, agent: { name: 'command', command }, ...more })
    const running = await create(
      'Flaky test: cart totals under load',
      'for i in $(seq 1 3000); do echo "step $i: checking callers of total()"; sleep 1; done',
    )
    const done = await create('Add VAT to invoices', vat)
    const failed = await create('Upgrade the test runner', 'echo "npm error code ERESOLVE" >&2; exit 3')
    const hostile = await create(
      `${evil} title`,
      `printf '%s\\n' '${evil}'; printf '\\033]8;;http://evil.example\\007link\\033]8;;\\007 \\033[31mred\\033[0m\\n'; echo '${evil}' > '<img src=x onerror=hurt()>.html'`,
    )
    ids = { done, failed, running, evil: hostile }
    for (const id of [done, failed, hostile]) await platform.api.untilEnded(id)
    tab = await openTab(browser, platform)
    await signIn(tab, platform)
  })
  afterAll(async () => {
    await browser?.close()
    await platform?.[Symbol.asyncDispose]()
  })

  const client = (): TasksClient => new TasksClient({ baseUrl: platform.url, token: platform.token })

  const open = async (path: string, wait: string): Promise<void> => {
    await tab.page.goto(`${platform.url}${path}`)
    await tab.page.locator(wait).first().waitFor()
  }

  it('creates a task with keys alone, and shows it in the list at once', async () => {
    const { page } = tab
    await open('/', '.row')
    await page.keyboard.press('c')
    await page.getByLabel('Repository').fill(`${platform.directory}/shop`)
    await page.getByLabel('What should be done').fill('Write a note by keyboard')
    await page.getByLabel('Agent').selectOption('command')
    await page.getByLabel('Command line').fill('echo noted > NOTE.md')
    await page.keyboard.press('Control+Enter')
    const row = page.locator('.row', { hasText: 'Write a note by keyboard' })
    await row.waitFor()
    await page.locator('.group-head', { hasText: 'Ready to review' }).waitFor()
    await waitUntil('its row says it is done', async () => (await row.locator('[aria-label="Done"]').count()) === 1)
  })

  it('finds a task and a command in the palette, and moves with keys', async () => {
    const { page } = tab
    await open('/', '.row')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('add vat')
    await page.keyboard.press('Enter')
    await page.waitForURL(`${platform.url}/tasks/${ids.done}`)
    // The address changes before the page that listens to keys is there.
    await page.locator('.result-card').waitFor()
    await page.keyboard.press('2')
    await page.locator('.file-diff').first().waitFor()
    await page.keyboard.press('u')
    await page.waitForURL(`${platform.url}/`)
    await page.locator('.row').first().waitFor()
    await page.keyboard.press('b')
    await page.locator('.board').waitFor()
  })

  it('S2-H5: keeps a project, starts a task with it that names no repository, and shows its tasks alone', async () => {
    const { page } = tab
    await open('/projects', '.empty')
    await page.keyboard.press('n')
    await page.getByLabel('Name', { exact: true }).fill('Shop')
    await page.getByText('A name has small letters, digits and hyphens.').waitFor()
    await page.getByLabel('Name', { exact: true }).fill('shop')
    await page.getByLabel('Repository').fill(`${platform.directory}/shop`)
    await page.locator('.project-form select').selectOption('command')
    await page.getByLabel('Command line').fill('echo "$CORRAL_PROMPT" > ASKED.md')
    await page.getByLabel('Checks, one a line').fill('asked: test -s ASKED.md')
    await page.getByRole('button', { name: 'Create project' }).click()
    await page.waitForURL(`${platform.url}/projects/shop`)
    await page.getByText('Nothing changed').waitFor()
    const kept = await client().projects.get('shop')
    expect(kept).toMatchObject({
      repo: `${platform.directory}/shop`,
      checks: [{ name: 'asked', command: 'test -s ASKED.md' }],
    })

    await page.keyboard.press('c')
    const dialog = page.locator('.new-task-dialog')
    await dialog
      .locator('label', { hasText: /^Project/ })
      .locator('select')
      .selectOption('shop')
    await dialog.getByLabel('Repository').fill('')
    await page.getByLabel('What should be done').fill('Say what was asked')
    await page.keyboard.press('Control+Enter')
    // The next page would take the request with it.
    await dialog.waitFor({ state: 'detached' })
    await open('/?project=shop', '.row')
    expect(await page.locator('.row').allInnerTexts()).toEqual([expect.stringContaining('Say what was asked')])

    await open('/projects/shop', '.project-form')
    await client().projects.change('shop', { description: 'changed by somebody else' })
    await page.getByLabel('Set-up command').fill('true')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('button', { name: 'Show it as it is now' }).click()
    await waitUntil(
      'the form shows the change of somebody else',
      async () => (await page.getByLabel('Description').inputValue()) === 'changed by somebody else',
    )
  })

  it('shows attempts side by side, and gives the branch to the one that is picked', async () => {
    const { page } = tab
    const command = (text: string) => ({ agent: { name: 'command', command: text } })
    const made = await client().create({
      repo: `${platform.directory}/shop`,
      task: 'Name the shop',
      new_branch: 'name-it',
      attempts: [command('echo one > NAME'), command('echo two > NAME'), command('exit 4')],
    })
    const [first = '', second = '', third = ''] = made.tasks ?? []
    for (const id of [first, second, third]) await platform.api.untilEnded(id)
    group = made.group ?? ''
    await open(`/tasks/${second}`, '.result-card')
    await page.getByRole('link', { name: '2 of 3' }).click()
    await page.waitForURL(`${platform.url}/compare/${group}`)
    await page.locator('tbody tr').nth(2).getByText('AgentFailed').waitFor()
    expect(await page.locator('tbody tr').nth(2).getByRole('button', { name: 'Pick' }).isDisabled()).toBe(true)
    await page.locator('tbody tr').nth(1).getByRole('button', { name: 'Pick' }).click()
    await page.locator('tbody tr').nth(1).getByText('picked').waitFor()
    await waitUntil('the branch has the second attempt', async () => {
      const { picked } = await client().group(group)
      return picked?.task === second && picked.status === 'SUCCEEDED'
    })
  })

  it('shows cause, hint and last output of a failure, and retries it', async () => {
    const { page } = tab
    await open(`/tasks/${ids.failed}`, '.failure-card')
    // The cause is in the task, the last lines come with its log.
    await page.locator('.failure-card', { hasText: 'npm error code ERESOLVE' }).waitFor()
    expect(await page.locator('.failure-card').innerText()).toContain('AgentFailed')
    await page.keyboard.press('r')
    await page.waitForURL((url) => url.pathname.startsWith('/tasks/') && !url.pathname.includes(ids.failed))
  })

  it('opens a shell in the sandbox, and continues it after the page is loaded again', async () => {
    const { page } = tab
    await platform.api.untilPhase(ids.running, 'RUNNING')
    await open(`/tasks/${ids.running}/terminal`, '.terminal-place .xterm-rows')
    await page.getByText('it goes on when you leave').waitFor()
    await page.locator('.terminal-place').click()
    await page.keyboard.type('MARK=kept-$((40+2)); echo said-$MARK\n')
    await page.locator('.xterm-rows', { hasText: 'said-kept-42' }).waitFor()
    await page.reload()
    await page.locator('.xterm-rows', { hasText: 'said-kept-42' }).waitFor()
    await page.locator('.terminal-place').click()
    await page.keyboard.type('echo again-$MARK\n')
    await page.locator('.xterm-rows', { hasText: 'again-kept-42' }).waitFor()
  })

  it('resizes a pool, as kubectl sees it', async () => {
    const { page } = tab
    await open('/sandboxes', '.pool')
    await page.getByLabel('Keep warm').fill('1')
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByText('Pool default keeps 1 warm').waitFor()
    const { items } = await (await platform.kube()).list((await import('@corral/resources')).SandboxWarmPools, {
      namespace: 'corral',
    })
    expect(items.map(({ spec }) => spec.replicas)).toEqual([1])
    await page.getByRole('button', { name: 'YAML' }).first().click()
    await page.locator('.yaml', { hasText: 'kind: SandboxWarmPool' }).waitFor()
  })

  it('S2-H4: tests the connection check by check, up to a sandbox that ran a command', async () => {
    await open('/settings', 'h2')
    await tab.page.getByRole('button', { name: 'Test connection' }).click()
    await tab.page.getByText('ran /bin/true, given back').waitFor()
  })

  it('keeps a key without ever showing it again', async () => {
    const { page } = tab
    await open('/settings/agents', '.secret')
    const field = page.locator('.secret', { hasText: 'anthropic' }).first()
    await field.locator('input').fill('sk-ant-never-shown')
    await field.getByRole('button', { name: 'Save' }).click()
    await page.getByText('anthropic is kept').waitFor()
    await page.reload()
    await page.locator('.secret').first().waitFor()
    expect(await page.content()).not.toContain('sk-ant-never-shown')
    const { text } = await platform.api.request('GET', '/secrets')
    expect(text).toContain('"anthropic"')
    expect(text).not.toContain('never-shown')
  })

  it.each<[string, () => string, string]>([
    ['the list', () => '/', '.row'],
    ['activity', () => `/tasks/${ids.evil}`, '.entry-output'],
    ['changes', () => `/tasks/${ids.evil}/changes`, '.file-diff'],
    ['details', () => `/tasks/${ids.evil}/details`, '.prompt'],
  ])('shows scripts and escapes as the text they are: %s', async (_, path, wait) => {
    await open(path(), wait)
    expect(await tab.page.evaluate(() => 'hurt' in globalThis)).toBe(false)
    expect(await tab.page.locator('main').innerText()).toContain('<img src=x onerror')
    expect(await tab.page.locator('main img, main script').count()).toBe(0)
    expect(await tab.page.locator('a[href*="evil.example"]').count()).toBe(0)
  })

  it('takes a task and its record away when a person says so', async () => {
    const { page } = tab
    await open(`/tasks/${ids.evil}`, '.result-card')
    page.once('dialog', (dialog) => void dialog.accept())
    await page.getByRole('button', { name: 'Remove' }).click()
    await page.waitForURL(`${platform.url}/`)
    await page.locator('.row', { hasText: 'window.hurt' }).waitFor({ state: 'detached' })
  })

  it('S2-H7: shows a plan with what approving grants, and says it when somebody else was quicker', async () => {
    const { page, context } = await openTab(browser, platform)
    await signIn({ page, context, failures: [], foreign: [] }, platform)
    const now = new Date().toISOString()
    const task = {
      id: 'task-planned',
      status: 'WAITING_APPROVAL',
      repo: '/src/shop',
      agent: { name: 'claude' },
      timeout_seconds: 1800,
      created_at: now,
    }
    const plan = {
      revision: 2,
      text: '1. Round **once**\n2. <script>window.hurt=1</script>',
      proposed_at: now,
      expires_at: now,
    }
    const summary = { ...task, title: 'Round once', plan: { revision: 2 } }
    await page.routeWebSocket(/\/stream/, (socket) =>
      socket.send(JSON.stringify({ type: 'tasks', cursor: 'x.1', reset: true, changed: [summary], removed: [] })),
    )
    await page.route('**/tasks/task-planned', (route) =>
      route.request().headers().accept?.includes('html')
        ? route.continue()
        : route.fulfill({ json: { ...task, task: 'Round once', plan, egress: ['packages.example.com:443'] } }),
    )
    const error = { code: 'PlanRevised', message: 'revision 2 was replaced by 3', hint: 'Read it again.' }
    const sent: unknown[] = []
    await page.route('**/tasks/task-planned/approve', (route) => {
      sent.push(route.request().postDataJSON())
      return route.fulfill({ status: 409, json: { error } })
    })
    await page.goto(`${platform.url}/tasks/task-planned`)
    await page.locator('.plan-card li', { hasText: 'Round once' }).waitFor()
    expect(await page.locator('.plan-grants').innerText()).toContain('packages.example.com:443')
    expect(await page.title()).toBe('(1) Corral')
    expect(await page.evaluate(() => 'hurt' in globalThis)).toBe(false)
    expect(await accessibilityProblems(page)).toEqual([])
    await page.keyboard.press('a')
    await page.getByText('Revision 2 was replaced by 3').waitFor()
    expect(sent).toEqual([{ revision: 2 }])
    await context.close()
  })

  it('sends remarks on lines to the agent as one follow-up on the same branch', async () => {
    const { page } = tab
    await open(`/tasks/${ids.done}/changes`, '.file-diff')
    await page.locator('.line.is-added').first().hover()
    await page.locator('.line.is-added .add-comment').first().click()
    await page.getByPlaceholder('What should the agent change here?').fill('Round before the clamp?')
    await page.getByRole('button', { name: 'Keep comment' }).click()
    await page.reload()
    await page.getByText('Round before the clamp?').waitFor()
    await page.getByRole('button', { name: 'Send to the agent' }).click()
    await page.waitForURL((url) => url.pathname.startsWith('/tasks/') && !url.pathname.includes(ids.done))
    const id = /task-[a-z0-9]+/.exec(page.url())?.[0] ?? ''
    const task = await platform.api.get(id)
    expect(task.continues).toBe(ids.done)
    expect(task.task).toContain('src/cart.ts:16')
    expect(task.task).toContain('Round before the clamp?')
  })

  it('asks nothing of any other host and breaks nothing on the way', () => {
    expect(tab.foreign).toEqual([])
    // The terminal writes style elements, which the policy refuses and the page replaces; the 409 is the project that somebody
    // else had changed.
    const failures = tab.failures.filter(
      (failure) => !isExpected(failure) && !/Applying inline style|status of 409/.test(failure),
    )
    expect(failures).toEqual([])
  })
})

const cart = `import { round } from './money.js'

export interface Line {
  price: number
  count: number
}

/** Sum of all lines, before discounts. */
export function subtotal(lines: Line[]): number {
  let sum = 0
  for (const { price, count } of lines) sum += price * count
  return sum
}

export function total(lines: Line[], discount: number): number {
  return subtotal(lines) - discount
}
`

const vat = `echo "Reading src/cart.ts"
printf '\\033[32m3 passed\\033[0m, \\033[31m1 failed\\033[0m\\n'
sed -i 's/  return subtotal(lines) - discount/  const due = subtotal(lines) - discount\\n  return round(Math.max(0, due))/' src/cart.ts
cat > src/tax.ts <<'END'
export const taxRate = 0.2

/** The price with tax. */
export function withTax(value: number): number {
  return value * (1 + taxRate)
}
END
echo "4 passed"`

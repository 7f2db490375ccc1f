import type { StreamFrame, TaskView } from '@corral/protocol'
import { summaryOf } from '@corral/protocol'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chromiumPath, startBrowser } from './browser.js'
import { exampleAnswers, exampleEvents, exampleNow, examplePlatform, exampleTasks } from './example-platform.js'
import { type Answer, openScripted, type ScriptedPlatform, type ScriptedTab, scriptedOrigin } from './scripted-page.js'

const refused =
  (status: number, code: string): Answer =>
  (route) =>
    route.fulfill({ status, json: { error: { code, message: `the ${code} of a test`, hint: 'Do the next thing.' } } })
const never: Answer = () => new Promise(() => undefined)
const nothing: StreamFrame = { type: 'tasks', cursor: 'x.1', reset: true, changed: [], removed: [] }

const withAnswers = (answers: Record<string, Answer>, first = examplePlatform.first): ScriptedPlatform => ({
  ...examplePlatform,
  answers: { ...exampleAnswers, ...answers },
  ...(first ? { first } : {}),
})

describe.skipIf(!chromiumPath)('every state of a page', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await startBrowser()
  })
  afterAll(() => browser?.close())

  const shown = async (
    platform: ScriptedPlatform,
    path: string,
    look: (tab: ScriptedTab) => Promise<void>,
    clock: { now?: Date } = { now: exampleNow },
  ) => {
    const tab = await openScripted(browser, platform, clock)
    try {
      await tab.page.goto(scriptedOrigin + path)
      await look(tab)
    } finally {
      await tab.context.close()
    }
  }

  it.each<[string, string, Record<string, Answer>, StreamFrame[] | undefined, string]>([
    ['an empty list offers the first task', '/', {}, [nothing], 'Run the demo task'],
    ['an empty Review says when something appears', '/review', {}, [nothing], 'Nothing waits for review'],
    ['no project yet', '/projects', { '/projects': { projects: [] } }, undefined, 'No project'],
    ['no change yet', '/tasks/task-run01/changes', {}, undefined, 'No changes yet'],
    ['no change was needed', '/tasks/task-old01/changes', {}, undefined, 'The agent left the repository as it was'],
    ['a terminal of a sandbox that is gone', '/tasks/task-vat01/terminal', {}, undefined, 'gone'],
    ['a filter that matches nothing', '/?q=zebra', {}, undefined, 'No task matches'],
    ['a page that does not exist', '/settings/agents/x', {}, undefined, 'There is no such page'],
    [
      'a task that does not exist',
      '/tasks/task-none',
      { '/tasks/task-none': refused(404, 'TaskNotFound') },
      undefined,
      'There is no such task',
    ],
  ])('empty: %s', async (_, path, answers, first, words) => {
    await shown(withAnswers(answers, first), path, ({ page }) => page.getByText(words).first().waitFor())
  })

  it.each([
    ['the list', '/', {}, []],
    ['the settings', '/settings', { '/settings': never }, undefined],
    ['the change', '/tasks/task-vat01/changes', { '/tasks/task-vat01/diff': never }, undefined],
    ['the sandboxes', '/sandboxes', { '/sandboxes': never, '/pools': never }, undefined],
  ] as [string, string, Record<string, Answer>, StreamFrame[] | undefined][])(
    'loading: %s shows grey rows and says so',
    async (_, path, answers, first) => {
      await shown(withAnswers(answers, first), path, ({ page }) =>
        page.locator('.loading[role="status"]').waitFor({ state: 'attached' }),
      )
    },
  )

  it.each([
    ['the change', '/tasks/task-vat01/changes', '/tasks/task-vat01/diff'],
    ['the settings', '/settings', '/settings'],
    ['the sandboxes', '/sandboxes', '/sandboxes'],
    ['the projects', '/projects', '/projects'],
    ['the attempts', '/compare/group-vat', '/groups/group-vat'],
  ])('error: %s says what failed and what to do next', async (_, path, failing) => {
    await shown(withAnswers({ [failing]: refused(503, 'ServiceUnavailable') }), path, async ({ page }) => {
      await page.getByText('The ServiceUnavailable of a test').first().waitFor()
      await page.getByText('Do the next thing.').first().waitFor()
    })
  })

  it('offline: the last state stays, writing is off, and what was missed comes with the connection', async () => {
    const look = async (tab: ScriptedTab): Promise<void> => {
      const { page } = tab
      await page.locator('.plan-card').waitFor()
      tab.setDown(true)
      await page.getByText('Reconnecting').waitFor()
      expect(await page.getByRole('button', { name: 'Approve and run' }).isDisabled()).toBe(true)
      expect(await page.locator('.plan-card').count()).toBe(1)
      tab.setDown(false)
      await page.getByText('Reconnecting').waitFor({ state: 'detached' })
      expect(await page.getByRole('button', { name: 'Approve and run' }).isDisabled()).toBe(false)
      const before = await page.locator('.entry').count()
      const last = exampleEvents['task-plan42']?.length ?? 0
      const said = { type: 'message' as const, role: 'assistant' as const, text: 'still here' }
      const event = { sequence: last + 1, time: exampleNow.toISOString(), ...said }
      tab.send({ type: 'events', task: 'task-plan42', events: [event] })
      await page.getByText('still here').waitFor()
      expect(await page.locator('.entry').count()).toBe(before + 1)
    }
    // On a clock that runs: the next try to connect is at a time.
    await shown(examplePlatform, '/tasks/task-plan42', look, {})
  })

  it('two decisions: a plan that somebody else has replaced is told as that', async () => {
    const platform = withAnswers({ 'POST /tasks/task-plan42/approve': refused(409, 'PlanRevised') })
    await shown(platform, '/tasks/task-plan42', async (tab) => {
      await tab.page.locator('.plan-card').waitFor()
      await tab.page.keyboard.press('a')
      await tab.page.getByText('The PlanRevised of a test').waitFor()
      expect(tab.sent).toEqual(['POST /tasks/task-plan42/approve {"revision":2}'])
    })
  })

  const evil = '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>'
  const link = '\u001b]8;;http://evil.example\u0007click\u001b]8;;\u0007 \u001b]52;c;ZXZpbA==\u0007'
  const hostile: TaskView = {
    ...(exampleTasks[0] as TaskView),
    id: 'task-evil',
    task: `${evil} title`,
    repo: `/src/${evil}`,
    branch: evil,
    outcome: 'changes',
    cause: { code: evil, message: evil, hint: `[x](javascript:window.hurt=1) ${evil}` },
    plan: {
      revision: 1,
      text: `# ${evil}\n\n[go](javascript:window.hurt=1) ![x](http://evil.example/x.png) <b onclick="hurt()">b</b>`,
      proposed_at: exampleNow.toISOString(),
      expires_at: exampleNow.toISOString(),
    },
    questions: [
      {
        id: 'q',
        kind: 'input',
        text: evil,
        options: [{ id: 'a', label: evil }],
        asked_at: exampleNow.toISOString(),
        expires_at: exampleNow.toISOString(),
      },
    ],
  }
  const asking: TaskView = { ...hostile, id: 'task-asks', status: 'WAITING_INPUT' }
  const patch = `diff --git "a/${evil.replaceAll('"', '\\"')}" "b/${evil.replaceAll('"', '\\"')}"\nnew file mode 100644\n--- /dev/null\n+++ "b/${evil.replaceAll('"', '\\"')}"\n@@ -0,0 +1,2 @@ ${evil}\n+${evil}\n+${link}\n`
  const hostilePlatform: ScriptedPlatform = {
    ...withAnswers({
      '/tasks/task-evil': hostile,
      '/tasks/task-asks': asking,
      '/tasks/task-evil/diff': patch,
      '/sandboxes': {
        sandboxes: [{ name: evil, state: 'failed', message: evil, created_at: exampleNow.toISOString() }],
      },
      '/objects/sandboxwarmpool/default': { kind: evil, name: evil, namespace: evil, yaml: evil, events: [] },
      '/projects': {
        projects: [{ name: evil, description: evil, resource_version: '1', created_at: exampleNow.toISOString() }],
      },
    }),
    first: [{ type: 'tasks', cursor: 'x.1', reset: true, changed: [hostile, asking].map(summaryOf), removed: [] }],
    onSubscribe: ({ task }) => [
      {
        type: 'events',
        task,
        events: [
          {
            sequence: 1,
            time: exampleNow.toISOString(),
            type: 'message',
            role: 'assistant',
            text: `${evil}\n\n[go](javascript:1)`,
          },
          { sequence: 2, time: exampleNow.toISOString(), type: 'tool_call', call_id: evil, tool: evil, summary: evil },
          {
            sequence: 3,
            time: exampleNow.toISOString(),
            type: 'tool_result',
            call_id: evil,
            is_error: true,
            text: link,
          },
          { sequence: 4, time: exampleNow.toISOString(), type: 'output', stream: 'stdout', text: `${link}${evil}\n` },
        ],
      },
    ],
  }
  const isHarmless = async (page: Page): Promise<void> => {
    expect(await page.evaluate(() => 'hurt' in globalThis)).toBe(false)
    expect(await page.locator('main script, main img, main iframe, main object').count()).toBe(0)
    expect(await page.locator('a[href^="javascript"], [onclick], [onerror]').count()).toBe(0)
    // An agent may name an address in its Markdown: nothing is loaded from there, and it is not told where the link was.
    const links = page.locator('a[href*="evil.example"]')
    expect(await links.count()).toBe(await page.locator('.plan-card a[rel~="noreferrer"]').count())
    expect(await page.locator('body').innerText()).toContain('<img src=x onerror')
  }
  it.each([
    ['the list', '/', '.row'],
    ['the board', '/?view=board', '.card'],
    ['activity and plan', '/tasks/task-evil', '.plan-card'],
    ['a question', '/tasks/task-asks', '.question-card'],
    ['a file name, its code and its hunk', '/tasks/task-evil/changes', '.file-diff'],
    ['details', '/tasks/task-evil/details', '.prompt'],
    ['a sandbox', '/sandboxes', '.pool'],
    ['a project', '/projects', '.table'],
  ])('hostile: scripts, links and escapes stay text: %s', async (_, path, wait) => {
    await shown(hostilePlatform, path, async ({ page }) => {
      await page.locator(wait).first().waitFor()
      await isHarmless(page)
    })
  })

  it('late: what is drawn after its entry does not push the end of the feed out of sight', async () => {
    const { page, context } = await openScripted(browser, examplePlatform, { now: exampleNow, width: 390 })
    let isDrawn = (): void => undefined
    const drawn = new Promise<void>((resolve) => {
      isDrawn = resolve
    })
    await context.route('**/markdown-text-*', async (route) => {
      await drawn
      await route.fallback()
    })
    await page.goto(`${scriptedOrigin}/tasks/task-plan42`)
    await page.locator('.plan-card').waitFor()
    isDrawn()
    await page.locator('.plan-card li').first().waitFor()
    const below = (): Promise<number> =>
      page.locator('.feed').evaluate((feed) => feed.scrollHeight - feed.scrollTop - feed.clientHeight)
    await expect.poll(below).toBeLessThan(2)
    await context.close()
  })

  it('hostile: the YAML of an object stays text', async () => {
    await shown(hostilePlatform, '/sandboxes', async ({ page }) => {
      await page.getByRole('button', { name: 'YAML' }).first().click()
      await page.locator('.yaml').waitFor()
      await isHarmless(page)
    })
  })
})

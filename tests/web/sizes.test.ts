import type { StreamFrame, TaskEvent, TaskSummary } from '@corral/protocol'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chromiumPath, startBrowser } from './browser.js'
import { exampleAnswers, exampleNow, summaries } from './example-platform.js'
import { manyEvents, manyTasks, patchOf } from './large-data.js'
import { openScripted, type ScriptedPlatform, scriptedOrigin } from './scripted-page.js'

const tasksFrame = (changed: readonly TaskSummary[]): StreamFrame => ({
  type: 'tasks',
  cursor: 'x.1',
  reset: true,
  changed,
  removed: [],
})

/** Sizes at which interfaces stand still: all of it is there, little of it is in the page. `npm run bench:web` has times. */
describe.skipIf(!chromiumPath)('large', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await startBrowser()
  })
  afterAll(() => browser?.close())

  const open = async (platform: ScriptedPlatform, path: string) => {
    const tab = await openScripted(browser, platform, { now: exampleNow })
    await tab.page.goto(scriptedOrigin + path)
    return tab
  }

  it('5,000 tasks: counted whole, a few dozen rows exist, and the last one is reached by scrolling', async () => {
    const { page, context } = await open({ answers: exampleAnswers, first: [tasksFrame(manyTasks(5_000))] }, '/')
    await page.locator('.row').first().waitFor()
    const counts = await page.locator('.group-head span').allInnerTexts()
    expect(await page.locator('.row').count()).toBeLessThan(80)
    await page.locator('.rows').evaluate((box) => {
      const element = box as unknown as { scrollTop: number; scrollHeight: number }
      element.scrollTop = element.scrollHeight
    })
    await page.getByText('Task number 4999').waitFor()
    expect(await page.locator('.row').count()).toBeLessThan(80)
    expect(counts.length).toBeGreaterThan(0)
    await page.getByPlaceholder('Filter').fill('number 1234')
    await page.getByText('Task number 1234').waitFor()
    expect(await page.locator('.row').count()).toBe(1)
    await page.goto(`${scriptedOrigin}/?view=board`)
    await page.locator('.card').first().waitFor()
    expect(await page.locator('.card').count()).toBeLessThanOrEqual(350)
    await context.close()
  })

  const logPlatform = (events: readonly TaskEvent[]): ScriptedPlatform => ({
    answers: exampleAnswers,
    first: [tasksFrame(summaries)],
    onSubscribe: ({ task, after }) => {
      const frames: StreamFrame[] = []
      const left = events.filter(({ sequence }) => sequence > after)
      for (let at = 0; at < left.length; at += 500)
        frames.push({ type: 'events', task, events: left.slice(at, at + 500) })
      return frames
    },
  })

  it('10,000 events: the newest is shown, the page stays small, the first is reached', async () => {
    const { page, context } = await open(logPlatform(manyEvents(10_000)), '/tasks/task-run01')
    await page.getByText('step 10000', { exact: false }).last().waitFor()
    expect(
      await page.evaluate(
        () =>
          (
            globalThis as unknown as { document: { querySelectorAll(all: string): { length: number } } }
          ).document.querySelectorAll('*').length,
      ),
    ).toBeLessThan(3_000)
    await page
      .getByRole('button', { name: /Show earlier/ })
      .first()
      .waitFor()
    await context.close()
  })

  it('a log at its cap: folded, whole when unfolded, and the page answers', async () => {
    const text = 'x'.repeat(200)
    const lines = Array.from({ length: 5_000 }, (_, index) => `line ${index + 1} ${text}`)
    const events: TaskEvent[] = []
    for (let at = 0; at < lines.length; at += 50)
      events.push({
        sequence: events.length + 1,
        time: exampleNow.toISOString(),
        type: 'output',
        stream: 'stdout',
        text: `${lines.slice(at, at + 50).join('\n')}\n`,
      })
    const { page, context } = await open(logPlatform(events), '/tasks/task-run01')
    await page.getByText('line 5000').waitFor()
    await page.keyboard.press('4')
    await page.locator('.prompt').waitFor()
    await context.close()
  })

  it('a patch of 10,000 lines: folded, never left out, whole when it is opened', async () => {
    const answers = { ...exampleAnswers, '/tasks/task-vat01/diff': patchOf(10_000) }
    const { page, context } = await open({ answers, first: [tasksFrame(summaries)] }, '/tasks/task-vat01/changes')
    await page.getByRole('button', { name: '10,000 lines: show them' }).click()
    // Counted in the page: looking for a text reads all of it, again and again, while it grows.
    await page.waitForFunction('document.querySelectorAll("tr.is-added").length === 10000')
    // Not innerText, which is empty of what is below the window and therefore not laid out.
    expect(await page.locator('tr.is-added').last().textContent()).toContain('added line 10000')
    await context.close()
  })
})

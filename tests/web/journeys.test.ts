import { gitRepository, type PlatformProcess, startPlatformProcess } from '@corral/testing'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chromiumPath, isExpected, openTab, signIn, startBrowser } from './browser.js'

/** Left out where no Chromium is: `npm run test:web` installs it and runs all journeys. */
describe.skipIf(!chromiumPath)('in a browser', () => {
  let platform: PlatformProcess
  let browser: Browser
  beforeAll(async () => {
    platform = await startPlatformProcess()
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await platform?.[Symbol.asyncDispose]()
  })

  it('S2-H1: signs in by the link that is printed, once; by the token; not by another; and stays over a restart', async () => {
    const tab = await openTab(browser, platform)
    const { page } = tab
    await page.goto(`${platform.url}/`)
    await page.getByLabel('Token').fill('wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('This is not the token of this platform').waitFor()
    await page.getByLabel('Token').fill(platform.token)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Tasks' }).waitFor()

    const other = await openTab(browser, platform)
    const { stdout } = await platform.corral(['open', '--print'])
    await other.page.goto(stdout.trim())
    await other.page.getByRole('heading', { name: 'Tasks' }).waitFor()
    expect(other.page.url()).toBe(`${platform.url}/`)
    const third = await openTab(browser, platform)
    await third.page.goto(stdout.trim())
    await third.page.getByText('This link was used already or is too old').waitFor()

    await platform.stop()
    await platform.restart()
    await page.goto(`${platform.url}/`)
    await page.getByRole('heading', { name: 'Tasks' }).waitFor()
    for (const { context } of [tab, other, third]) await context.close()
  })

  it('ends the first run with a finished demo task and its branch, without a key', async () => {
    const tab = await openTab(browser, platform)
    await signIn(tab, platform)
    const { page } = tab
    await page.getByRole('button', { name: 'Run the demo task' }).click()
    await page.getByText('Ready to review').waitFor()
    const id = /task-[a-z0-9]+/.exec(page.url())?.[0] ?? ''
    expect((await platform.api.get(id)).branch).toBe(`corral/${id}`)
    await page.getByRole('link', { name: 'Review changes' }).click()
    await page.getByText('sort((one, other) => one - other)').waitFor()
    expect(tab.failures.filter((failure) => !isExpected(failure))).toEqual([])
    expect(tab.foreign).toEqual([])
    await tab.context.close()
  })

  it('loses no event and shows none twice when the server is killed while a task writes', async () => {
    const repo = await gitRepository(`${platform.directory}/counted`)
    const id = await platform.api.create({
      repo: repo.path,
      task: 'Count',
      agent: { name: 'command', command: 'for i in $(seq 1 40); do echo "number $i."; sleep 0.25; done' },
    })
    const tab = await openTab(browser, platform)
    await signIn(tab, platform)
    const { page } = tab
    await page.goto(`${platform.url}/tasks/${id}`)
    await page.getByText('number 5.').waitFor()
    await platform.kill9()
    await page.getByText('Reconnecting', { exact: false }).waitFor()
    await platform.restart()
    await page.getByText('Done', { exact: true }).first().waitFor()
    const unfold = page.locator('.entry-output .fold')
    for (const fold of await unfold.all()) await fold.click()
    const text = (await page.locator('.entry-output pre').allInnerTexts()).join('\n')
    const numbers = [...text.matchAll(/number (\d+)\./g)].map(([, number]) => Number(number))
    expect(numbers).toEqual(Array.from({ length: 40 }, (_, index) => index + 1))
    await tab.context.close()
  })
})

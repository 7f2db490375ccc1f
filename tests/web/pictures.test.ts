import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { accessibilityProblems, chromiumPath, startBrowser } from './browser.js'
import { exampleNow, examplePlatform } from './example-platform.js'
import { pictureDifference, pictureThreshold } from './picture-differences.js'
import { type Picture, pictures } from './picture-list.js'
import { openScripted, type ScriptedTab, scriptedOrigin } from './scripted-page.js'
import { smallPng } from './small-png.js'

/**
 * Every page as a picture, both themes, wide and narrow, beside the committed one. The fonts are the interface's own; the
 * browser is the version the pictures were made with, because another draws letters in another way.
 * `CORRAL_WRITE_PICTURES=1` writes them anew: look at each before it is committed.
 */
const directory = join(dirname(fileURLToPath(import.meta.url)), 'pictures')
const versionFile = join(directory, 'chromium-version.txt')
const isWriting = process.env.CORRAL_WRITE_PICTURES !== undefined

/** Rules are looked at once for each theme and each width: a colour is of a theme, an overflow of a width. */
const variants = [
  { colorScheme: 'dark', width: 1280, hasRules: true },
  { colorScheme: 'dark', width: 390, hasRules: false },
  { colorScheme: 'light', width: 1280, hasRules: false },
  { colorScheme: 'light', width: 390, hasRules: true },
] as const

describe.skipIf(!chromiumPath)('every page, as it was looked at', () => {
  let browser: Browser
  let isComparable: boolean
  const tabs = new Map<string, ScriptedTab>()
  beforeAll(async () => {
    browser = await startBrowser()
    const wanted = existsSync(versionFile) ? readFileSync(versionFile, 'utf8').trim() : ''
    isComparable = isWriting || browser.version() === wanted
    if (!isComparable)
      process.stderr.write(`pictures: this is Chromium ${browser.version()}, they are of ${wanted}: none is compared\n`)
    if (isWriting) {
      mkdirSync(directory, { recursive: true })
      writeFileSync(versionFile, `${browser.version()}\n`)
    }
    for (const variant of variants) {
      const tab = await openScripted(browser, examplePlatform, { ...variant, now: exampleNow })
      await tab.page.goto(scriptedOrigin)
      tabs.set(`${variant.colorScheme} ${variant.width}`, tab)
    }
  })
  afterAll(() => browser?.close())

  it.each(pictures.map((picture) => [picture.name, picture] as const))(
    'S2-M2: %s looks as it did, and breaks no rule of WCAG 2.2 AA',
    async (name, picture) => {
      const differing: string[] = []
      for (const variant of variants) {
        const { colorScheme, width, hasRules } = variant
        const own = picture.platform && (await openScripted(browser, picture.platform, { ...variant, now: exampleNow }))
        await own?.page.goto(scriptedOrigin)
        const tab = own ?? tabs.get(`${colorScheme} ${width}`)
        if (!tab) throw new Error('the tab was not opened')
        await show(tab, picture)
        const file = `${name}-${colorScheme}-${width}.png`
        const problems = hasRules && !isWriting ? await accessibilityProblems(tab.page) : []
        const wide = await tab.page.evaluate<number>('document.documentElement.scrollWidth')
        if (wide > width) problems.push(`the page is ${wide} pixels wide and scrolls sideways`)
        if (isComparable) problems.push(...(await differencesOf(tab.page, file)))
        differing.push(...problems.map((problem) => `${file}: ${problem}`))
        await own?.context.close()
      }
      expect(differing).toEqual([])
    },
  )
})

/** How the page differs from its picture; writes the picture where that was asked for. */
async function differencesOf(page: Page, file: string): Promise<string[]> {
  const taken = await page.screenshot({ animations: 'disabled', caret: 'hide' })
  if (isWriting) {
    writeFileSync(join(directory, file), smallPng(taken))
    return []
  }
  if (!existsSync(join(directory, file))) return ['there is no such picture: CORRAL_WRITE_PICTURES=1 writes it']
  const difference = await pictureDifference(page, taken, readFileSync(join(directory, file)))
  if (difference <= pictureThreshold.pixels) return []
  mkdirSync('test-report/pictures', { recursive: true })
  writeFileSync(join('test-report/pictures', file), taken)
  return [`${(difference * 100).toFixed(2)} % of its pixels; see test-report/pictures`]
}

/** Tabs in which something was done: what is open or typed there goes with the next load. */
const touched = new WeakSet<ScriptedTab>()

async function show(tab: ScriptedTab, { path, wait, prepare }: Picture): Promise<void> {
  const { page } = tab
  if (touched.has(tab)) {
    await page.evaluate('localStorage.clear()')
    await page.goto(scriptedOrigin + path)
    touched.delete(tab)
  } else
    await page.evaluate(`history.pushState(null, '', ${JSON.stringify(path)}); dispatchEvent(new Event('popstate'))`)
  await page.locator(wait).first().waitFor()
  if (prepare) {
    await prepare(page)
    touched.add(tab)
    // Moved away from what it would light up.
    await page.mouse.move(0, 0)
  }
  await page.evaluate('document.fonts.ready.then(() => undefined)')
}

import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { hangMs, type PlatformProcess } from '@corral/testing'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'

/** Debian's Chromium, or the one the environment names; undefined where there is none. `npm run test:web` brings it. */
export const chromiumPath: string | undefined = [
  process.env.CORRAL_CHROMIUM,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find((path) => path !== undefined && existsSync(path))

export async function startBrowser(): Promise<Browser> {
  if (!chromiumPath)
    throw new Error('there is no Chromium: run `npm run test:web`, which installs it on Debian as root')
  // Root has no user namespace of its own to give to Chromium's sandbox; what it loads here is ours.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  return chromium.launch({ executablePath: chromiumPath, args, timeout: hangMs })
}

/** A tab that is watched: what goes wrong in it, and what it asks for elsewhere, is kept for the test to look at. */
export interface Tab {
  readonly page: Page
  readonly context: BrowserContext
  readonly failures: string[]
  readonly foreign: string[]
}

export async function openTab(
  browser: Browser,
  platform: Pick<PlatformProcess, 'url'>,
  options: { width?: number; colorScheme?: 'light' | 'dark' } = {},
): Promise<Tab> {
  const { width = 1280, colorScheme = 'dark' } = options
  const context = await browser.newContext({ viewport: { width, height: width < 500 ? 780 : 760 }, colorScheme })
  context.setDefaultTimeout(hangMs)
  context.setDefaultNavigationTimeout(hangMs)
  const page = await context.newPage()
  const failures: string[] = []
  const foreign: string[] = []
  page.on('pageerror', (error) => failures.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error') failures.push(message.text())
  })
  page.on('request', (request) => {
    const url = new URL(request.url())
    if (url.protocol !== 'data:' && url.host !== new URL(platform.url).host) foreign.push(request.url())
  })
  return { page, context, failures, foreign }
}

/** Signs a tab in by the link that `corral open` prints. */
export async function signIn({ page }: Tab, platform: PlatformProcess): Promise<void> {
  const { stdout } = await platform.corral(['open', '--print'])
  await page.goto(stdout.trim())
  await page.getByText('Live', { exact: false }).first().waitFor()
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

/** What the page breaks of WCAG 2.2 AA, one line each. */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  // As an expression: a script element would be refused by the content security policy of the page.
  await page.evaluate(axe)
  return page.evaluate(async (values) => {
    interface Axe {
      run(
        options: object,
      ): Promise<{ violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[] }>
    }
    const { violations } = await (globalThis as unknown as { axe: Axe }).axe.run({
      runOnly: { type: 'tag', values },
      // Hidden text of the terminal belongs to the terminal.
      exclude: [['.xterm']],
    })
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary = '' }) => `${id}: ${html.slice(0, 160)} ${failureSummary.slice(0, 300)}`),
    )
  }, rules)
}

/** What the browser says of its own about a server that is away or does not know it yet. */
export const isExpected = (failure: string): boolean =>
  /status of 401|ERR_CONNECTION_REFUSED|WebSocket connection to|net::ERR_/.test(failure)

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'

/** Where pictures of the pages go when somebody asks for them: `CORRAL_SCREENSHOTS=DIR npm run test:web`. */
const directory = process.env.CORRAL_SCREENSHOTS

export async function takeScreenshot(page: Page, name: string): Promise<void> {
  if (!directory) return
  mkdirSync(directory, { recursive: true })
  await page.screenshot({ path: join(directory, `${name}.png`), animations: 'disabled' })
}

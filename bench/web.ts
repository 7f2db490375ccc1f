import { chromium } from 'playwright-core'
import { chromiumPath } from '../tests/web/browser.js'
import { part, readBenchOptions } from './common/bench-options.js'
import { Recorder } from './common/result-file.js'
import { withScratch } from './common/scratch.js'
import { largeData } from './web-large-data.js'
import { liveEvents } from './web-live-events.js'
import { sizesOfFiles } from './web-sizes.js'
import { subscriptions } from './web-subscriptions.js'

/**
 * The web interface in Chromium, beside pages that only put the same data into the document with plain DOM calls, in the same
 * run: sizes, the way of an event to the screen, large lists, logs and patches, and what subscriptions cost the server.
 */
async function main(): Promise<void> {
  if (!chromiumPath) throw new Error('there is no Chromium: node scripts/chromium.mjs installs it on Debian as root')
  const options = readBenchOptions()
  const recorder = new Recorder('web', options)
  await part(options, 'sizes', async () => sizesOfFiles(recorder))
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  const browser = await chromium.launch({
    executablePath: chromiumPath,
    args: [...args, '--enable-precise-memory-info'],
  })
  recorder.versions.chromium = browser.version()
  try {
    await part(options, 'large', () => largeData(recorder, browser))
    await withScratch(async (directory) => {
      await part(options, 'live', () => liveEvents(recorder, browser, directory))
      await part(options, 'subscriptions', () => subscriptions(recorder, directory))
    })
  } finally {
    await browser.close()
  }
  recorder.finish()
}

await main()

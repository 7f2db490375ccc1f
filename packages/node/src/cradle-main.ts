import type { CradleConfig } from './cradle/protocol/messages.js'
import { runCradle } from './cradle/server/run-cradle.js'
import { cellStrategies } from './tiers/cell-strategies.js'

async function main(): Promise<void> {
  const config = JSON.parse(process.argv[2] ?? '') as CradleConfig
  await runCradle(config, cellStrategies[config.tier](config))
}

main().catch((error: unknown) => {
  process.stderr.write(`cradle: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
  process.exit(1)
})

import { fileURLToPath } from 'node:url'
import { runDaemon } from './run-daemon.js'
import { makeUndumpable } from './undumpable.js'

makeUndumpable(fileURLToPath(new URL('undumpable.node', import.meta.url)))
process.exit(await runDaemon(process.env, process.argv.slice(2)))

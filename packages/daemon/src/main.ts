import { runDaemon } from './run-daemon.js'

process.exit(await runDaemon(process.env, process.argv.slice(2)))

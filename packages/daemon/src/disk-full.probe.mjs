// Runs beside a daemon on a tiny file system and prints what the daemon says once it is full. Arguments: bundle, directory.
import { spawn } from 'node:child_process'
import { once } from 'node:events'

const [bundle, directory] = process.argv.slice(2)
const daemon = spawn(process.execPath, [bundle], {
  env: { PATH: process.env.PATH, CORRAL_DAEMON_PORT: '0', CORRAL_DAEMON_HOST: '127.0.0.1', TMPDIR: directory },
  stdio: ['ignore', 'pipe', 'inherit'],
})
const [line] = await once(daemon.stdout, 'data')
const url = `http://127.0.0.1:${JSON.parse(line).port}`
daemon.stdout.resume()
const put = (path, body) => fetch(url + path, { method: 'PUT', body })
const codeOf = async (response) => (await response.json()).error?.code

await put('/v1/processes/p', JSON.stringify({ argv: ['sh', '-c', 'cat /dev/zero'] }))
let record
do record = await (await fetch(`${url}/v1/processes/p`)).json()
while (!record.exit)
const health = (await fetch(`${url}/healthz`)).status
const file = await codeOf(await put(`/v1/files${directory}/x`, 'x'.repeat(100_000)))
const started = await codeOf(await put('/v1/processes/q', JSON.stringify({ argv: ['true'] })))
daemon.kill('SIGTERM')
const [code] = await once(daemon, 'exit')
console.log(JSON.stringify({ health, exit: record.exit, file, process: started, code }))

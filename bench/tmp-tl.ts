import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, writeFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { TasksClient, type TaskEvent } from '@corral/protocol'
import { startCorral } from './common/corral-process.js'
import { commandTask, makeRepository, type PlatformAddress } from './task-requests.js'
const directory = mkdtempSync('/tmp/envs-tl-'); execFileSync('chmod', ['o+x', directory])
const repository = makeRepository(join(directory, 'repository'))
mkdirSync(join(repository, '.corral'))
writeFileSync(join(repository, '.gitignore'), 'deps/\n')
writeFileSync(join(repository, '.corral/environment.yaml'), `version: 1\nsetup: "mkdir -p deps/0; for i in 0 1 2; do echo x > deps/0/$i; done"\n`)
execFileSync('sh', ['-c', 'git add -A && git -c user.name=b -c user.email=b@e.c commit -qm e'], { cwd: repository })
const dataDir = join(directory, 'd'); mkdirSync(dataDir, { mode: 0o711 })
const platform = await startCorral<PlatformAddress>(['up', '--data-dir', dataDir, '--port', '0', '--api-port', '0', '--agent', 'command'], dataDir)
const client = new TasksClient({ baseUrl: platform.ready.url, token: platform.ready.token })
for (let i = 0; i < 6; i++) {
  const { id } = await client.create(commandTask(repository, 'cat deps/0/0 deps/0/1 | wc -c'))
  const events: TaskEvent[] = []
  for await (const e of client.events(id)) events.push(e)
  const { status, cause } = await client.get(id)
  if (i >= 3) { const t0 = Date.parse(events[0]!.time); console.log(status, cause ?? ''); for (const e of events) console.log(String(Date.parse(e.time) - t0).padStart(6), JSON.stringify({ ...e, time: undefined, id: undefined }).slice(0, 170)) }
}
await platform.stop(); rmSync(directory, { recursive: true })

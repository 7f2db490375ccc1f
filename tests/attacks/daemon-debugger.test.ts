import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type TemporaryDirectory, temporaryDirectory } from '@corral/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { bundleDaemon, type DaemonBundle, startDaemon } from '../../packages/daemon/src/daemon-process.test-suite.js'

let bundle: DaemonBundle
let scratch: TemporaryDirectory
beforeAll(async () => {
  scratch = temporaryDirectory()
  bundle = await bundleDaemon()
})
afterAll(async () => {
  await bundle.remove()
  await scratch[Symbol.asyncDispose]()
})

it('SIGUSR1, which any process of a sandbox can send, opens no debugger in the daemon', async () => {
  const daemon = await startDaemon(bundle, scratch.path)
  let said = ''
  daemon.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  daemon.process.kill('SIGUSR1')
  // An answer after the signal: it has been delivered by then.
  for (let round = 0; round < 3; round++) expect(await daemon.client.health()).toBe(true)
  daemon.process.kill('SIGTERM')
  await daemon.exited
  expect(said).not.toContain('Debugger')
})

it('it does in a program that does not look after it', async () => {
  const script = 'setInterval(() => {}, 1000); console.log("up")'
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'pipe'] })
  await once(child.stdout, 'data')
  child.kill('SIGUSR1')
  const [text] = (await once(child.stderr, 'data')) as [Buffer]
  child.kill('SIGKILL')
  expect(String(text)).toContain('Debugger listening')
})

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DaemonClient } from '@corral/protocol'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bundleDaemon, type DaemonBundle } from './daemon-process.test-suite.js'

/** A read-only file system of one's own needs a mount namespace. */
const canMount = spawnSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']).status === 0

describe.skipIf(!canMount)('on a read-only file system', () => {
  let bundle: DaemonBundle
  let directory: string
  let client: DaemonClient
  let stop: () => Promise<unknown>

  beforeAll(async () => {
    bundle = await bundleDaemon()
    directory = await mkdtemp(join(tmpdir(), 'corral-read-only-'))
    const script = `mount -t tmpfs -o ro tmpfs ${directory} && exec "$0" "$@"`
    const daemon = spawn('unshare', ['-m', 'sh', '-c', script, process.execPath, bundle.file], {
      env: { PATH: process.env.PATH, CORRAL_DAEMON_PORT: '0', CORRAL_DAEMON_HOST: '127.0.0.1' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const exited = once(daemon, 'exit')
    stop = () => {
      daemon.kill('SIGTERM')
      return exited
    }
    const [line] = (await once(daemon.stdout, 'data')) as [Buffer]
    daemon.stdout.resume()
    const { port } = JSON.parse(line.toString()) as { port: number }
    client = new DaemonClient({
      fetch: (url, init) =>
        fetch(new URL(new URL(url).pathname + new URL(url).search, `http://127.0.0.1:${port}`), init),
    })
  })
  afterAll(async () => {
    await stop()
    await rm(directory, { recursive: true, force: true })
    await bundle.remove()
  })

  it.each([
    { what: 'a file', run: () => client.writeFile(`${directory}/x`, 'x') },
    {
      what: 'a file with missing directories',
      run: () => client.writeFile(`${directory}/a/b/x`, 'x', { mkdirs: true }),
    },
    {
      what: 'a directory with missing parents',
      run: () => client.fileOperation({ operation: 'mkdir', path: `${directory}/a/b`, recursive: true }),
    },
    { what: 'an archive', run: () => client.putTar(`${directory}/a/b`, Buffer.alloc(1024)) },
  ])('$what is refused as read-only, not as missing', async ({ run }) => {
    await expect(run()).rejects.toMatchObject({
      code: 'PermissionDenied',
      message: expect.stringContaining('read-only file system'),
    })
  })

  it('a directory under something that takes none is still missing', async () => {
    const call = client.writeFile('/proc/none/x', 'x', { mkdirs: true })
    await expect(call).rejects.toMatchObject({ code: 'NotFound' })
  })
})

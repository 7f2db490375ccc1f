import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { bundleDaemon } from './daemon-process.test-suite.js'

/** A small file system of one's own needs a mount namespace. */
const canMount = spawnSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']).status === 0
const probe = fileURLToPath(new URL('disk-full.probe.mjs', import.meta.url))

describe.skipIf(!canMount)('on a full disk', () => {
  it('the process is told to have ended, with the reason, and further requests answer DiskFull', async () => {
    const bundle = await bundleDaemon()
    const directory = await mkdtemp(join(tmpdir(), 'corral-full-'))
    try {
      const script = `mount -t tmpfs -o size=2m tmpfs ${directory} && exec "$0" "$@"`
      const run = spawnSync('unshare', ['-m', 'sh', '-c', script, process.execPath, probe, bundle.file, directory], {
        encoding: 'utf8',
        timeout: 240_000,
      })
      expect(run.stderr).toBe('')
      expect(JSON.parse(run.stdout)).toEqual({
        health: 200,
        exit: expect.objectContaining({ message: 'the disk of the sandbox is full' }),
        file: 'DiskFull',
        process: 'DiskFull',
        code: 0,
      })
    } finally {
      await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
      await bundle.remove()
    }
  })
})

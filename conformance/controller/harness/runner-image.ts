import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type ImageContents, programFiles } from '../../../tools/oracle/index.js'

const daemon = join(import.meta.dirname, '../../../packages/cli/dist/bundle/daemon.mjs')

/** `corral/daemon` as an image of a real runtime: Node of this machine, the daemon's bundle, a shell and its tools. */
export async function runnerImage(busybox: string): Promise<ImageContents> {
  const node = await programFiles('/usr/local/bin/node', process.execPath)
  const { stdout } = await promisify(execFile)(busybox, ['--list'], { timeout: 10_000 })
  const names = stdout.split('\n').filter((name) => name !== '' && name !== 'busybox')
  return {
    reference: 'docker.io/corral/daemon:latest',
    entrypoint: ['/usr/local/bin/node', '/opt/corral/daemon.mjs'],
    files: new Map([...node, ['/bin/busybox', busybox], ['/opt/corral/daemon.mjs', daemon]]),
    links: new Map(names.map((name) => [`/bin/${name}`, 'busybox'])),
  }
}

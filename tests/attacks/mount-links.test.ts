import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  compiledSupervisor,
  hasBubblewrap,
  openWorkbench,
  type Variant,
  type Workbench,
} from '../../packages/node/src/isolation/workbench.test-suite.js'

const guardMs = 240_000
const variants: Variant[] = ['bubblewrap + compiled supervisor', 'bubblewrap + Node supervisor']

/**
 * While bwrap mounts, the host lies at `/oldroot` beside the new root. A link on the way to a target that leads there has the
 * mount land over a directory of the host, and the next mount takes its source from what was mounted.
 */
describe.skipIf(!hasBubblewrap || !compiledSupervisor()).each(variants)(
  'links on the way to a mount: %s',
  (variant) => {
    let bench: Workbench
    let number = 0
    beforeAll(() => {
      bench = openWorkbench(variant)
    })
    afterAll(() => bench[Symbol.asyncDispose]())

    /** Volumes of a pod below one directory. */
    function volumes(...names: string[]): { root: string; at: (name: string) => string } {
      const root = join(bench.dataDir, `volumes-${number++}`)
      for (const path of ['', ...names]) {
        mkdirSync(join(root, path))
        chmodSync(join(root, path), 0o777)
      }
      return { root, at: (name) => join(root, name) }
    }

    const mount = (source: string, target: string) => ({ source, target, readOnly: false })

    it('a link that the code of a sandbox left in a volume does not mount the host', { timeout: guardMs }, async () => {
      const { root, at } = volumes('work', 'npm', 'pip')
      symlinkSync(`/oldroot${root}`, join(at('work'), 'npm'))
      symlinkSync('/oldroot', join(at('npm'), 'pip'))
      const mounts = [mount(at('work'), '/work'), mount(at('npm'), '/work/npm'), mount(at('pip'), '/work/pip')]
      await expect(bench.start('exec sleep 600', { plan: { mounts } })).rejects.toThrow(
        '/work/npm cannot be mounted: "npm" on the way to it is a link in /work',
      )
    })

    it('the same volumes without the link are mounted', { timeout: guardMs }, async () => {
      const { at } = volumes('work', 'npm', 'pip')
      writeFileSync(join(at('pip'), 'file'), 'of pip')
      const mounts = [mount(at('work'), '/work'), mount(at('npm'), '/work/npm'), mount(at('pip'), '/work/a/pip')]
      const cell = await bench.start('exec sleep 600', { plan: { mounts } })
      expect((await bench.run(cell, 'ls /work; cat /work/a/pip/file')).stdout).toBe('a\nnpm\nof pip')
    })

    it('a link in HOME, above a cache that is mounted in it, mounts nothing elsewhere', {
      timeout: guardMs,
    }, async () => {
      const { root, at } = volumes('home', 'cache')
      symlinkSync(`/oldroot${root}`, join(at('home'), '.cache'))
      const mounts = [mount(at('home'), '/home/agent'), mount(at('cache'), '/home/agent/.cache/made')]
      await expect(bench.start('exec sleep 600', { plan: { mounts } })).rejects.toThrow(
        '".cache" on the way to it is a link',
      )
      expect(readdirSync(root).sort()).toEqual(['cache', 'home'])
    })

    it('a memory volume below a link is refused as well', { timeout: guardMs }, async () => {
      const { root, at } = volumes('work')
      symlinkSync(`/oldroot${root}`, join(at('work'), 'fast'))
      const plan = { mounts: [mount(at('work'), '/work')], tmpfs: [{ target: '/work/fast/made' }] }
      await expect(bench.start('exec sleep 600', { plan })).rejects.toThrow(
        '"fast" on the way to it is a link in /work',
      )
      expect(existsSync(join(root, 'made'))).toBe(false)
    })

    it('a volume inside a memory volume is there', { timeout: guardMs }, async () => {
      const { at } = volumes('keys')
      writeFileSync(join(at('keys'), 'key'), 'of the pod')
      const plan = { mounts: [mount(at('keys'), '/cache/keys')], tmpfs: [{ target: '/cache' }] }
      const cell = await bench.start('exec sleep 600', { plan })
      expect((await bench.run(cell, 'stat -f -c %T /cache; cat /cache/keys/key')).stdout).toBe('tmpfs\nof the pod')
    })

    it('a HOME that climbs out of the new root is a directory of the cell', { timeout: guardMs }, async () => {
      const { root } = volumes()
      const cell = await bench.start('exec sleep 600', { plan: { env: { HOME: `/../oldroot${root}/made` } } })
      expect((await bench.run(cell, 'echo kept > "$HOME/file"; cat "$HOME/file"')).stdout).toBe('kept\n')
      expect(readdirSync(root)).toEqual([])
    })

    it('a volume at a link of the system, such as /var/run, is mounted where that leads', {
      timeout: guardMs,
    }, async () => {
      const { at } = volumes('tokens')
      writeFileSync(join(at('tokens'), 'token'), 'of the pod')
      const mounts = [mount(at('tokens'), '/var/run/tokens')]
      const cell = await bench.start('exec sleep 600', { plan: { mounts } })
      expect((await bench.run(cell, 'cat /var/run/tokens/token /run/tokens/token')).stdout).toBe('of the podof the pod')
    })

    it('links of an image lead to directories of that image', { timeout: guardMs }, async () => {
      const { root, at } = volumes('image', 'npm', 'pip')
      for (const name of ['usr', 'etc', 'var', 'opt']) mkdirSync(join(at('image'), name))
      for (const name of ['resolv.conf', 'hosts', 'hostname', 'passwd', 'group'])
        writeFileSync(join(at('image'), 'etc', name), '')
      for (const name of ['bin', 'lib', 'lib64', 'sbin']) symlinkSync(`usr/${name}`, join(at('image'), name))
      symlinkSync(`/oldroot${root}`, join(at('image'), 'npm'))
      symlinkSync('../../oldroot', join(at('image'), 'home'))
      symlinkSync('/oldroot', join(at('npm'), 'pip'))
      const mounts = [
        { source: '/usr', target: '/usr', readOnly: true },
        mount(at('npm'), '/npm'),
        mount(at('pip'), '/opt/pip'),
      ]
      const cell = await bench.start('exec sleep 600', { plan: { root: at('image'), mounts } })
      const { stdout } = await bench.run(
        cell,
        `ls /opt/pip | wc -l; ls -d /npm/pip /oldroot${root}/pip; echo x > $HOME/x`,
      )
      expect(stdout).toBe(`0\n/npm/pip\n/oldroot${root}/pip\n`)
      expect(existsSync('/agent')).toBe(false)
    })
  },
)

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { type TemporaryDirectory, temporaryDirectory } from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { writeCompiled } from '../../scripts/images/compiled.js'
import { type ImageSpec, writeOciArchive } from '../../scripts/images/oci-archive.js'
import { debianComponents, npmComponents, spdxDocument } from '../../scripts/images/sbom.js'

let scratch: TemporaryDirectory
beforeAll(() => {
  scratch = temporaryDirectory()
})
afterAll(() => scratch[Symbol.asyncDispose]())

/** A layer with these files, written in the given order at the given time. */
function layer(name: string, files: readonly (readonly [string, string])[], time: number): string {
  const place = join(scratch.path, name)
  for (const [file, text] of files) {
    mkdirSync(join(place, file, '..'), { recursive: true })
    writeFileSync(join(place, file), text)
    chmodSync(join(place, file), 0o755)
    utimesSync(join(place, file), time, time)
  }
  return place
}
const spec = (layers: string[]): ImageSpec => ({
  reference: 'docker.io/library/thing:1',
  architecture: 'amd64',
  layers,
  entrypoint: ['/bin/thing'],
  env: { PATH: '/bin' },
  user: '1000:1000',
  workingDir: '/',
  labels: { a: 'b' },
  epochSeconds: 1_767_225_600,
})
const files = [
  ['bin/thing', '#!/bin/sh\necho thing\n'],
  ['etc/b', 'b'],
  ['etc/a', 'a'],
] as const

it('what V8 compiled of a program is the same wherever and whenever, and V8 takes it', () => {
  const source = `(function (require, module) {
    const names = {}; for (const each of process.argv) names[each] = () => each.length
    module.exports = (() => Object.keys(names).map((each) => names[each]()))()
  })`
  const programs = ['here', 'there'].map((name) => join(layer(name, [['main.cjs', source]], 1000), 'main.cjs'))
  const outs = programs.map((program) => {
    writeCompiled(program, '/opt/corral/main.cjs', `${program}.compiled`)
    return readFileSync(`${program}.compiled`)
  })
  expect(outs[1]).toEqual(outs[0])
  // In a process of its own: V8 takes nothing that was compiled under other flags, and a test beside this one may have set some.
  const take = `const { Script } = require('node:vm'), { readFileSync } = require('node:fs')
    const [source, cached] = process.argv.slice(1).map((path) => readFileSync(path))
    const script = new Script(String(source), { filename: '/opt/corral/main.cjs', cachedData: cached })
    process.stdout.write(String(script.cachedDataRejected))`
  expect(
    execFileSync(process.execPath, ['-e', take, programs[0]!, `${programs[0]}.compiled`], { encoding: 'utf8' }),
  ).toBe('false')
})

describe('an image written without Docker', () => {
  it('has the same digest for the same content, whenever and in whichever order it was written', async () => {
    const first = await writeOciArchive(spec([layer('one', files, 1000)]), join(scratch.path, 'one.tar'))
    const second = await writeOciArchive(
      spec([layer('two', [...files].reverse(), 2000)]),
      join(scratch.path, 'two.tar'),
    )
    expect(second.digest).toBe(first.digest)
    expect(readFileSync(join(scratch.path, 'two.tar'))).toEqual(readFileSync(join(scratch.path, 'one.tar')))
    const changed = await writeOciArchive(
      spec([layer('three', [['bin/thing', 'other']], 1000)]),
      join(scratch.path, '3.tar'),
    )
    expect(changed.digest).not.toBe(first.digest)
  })

  it('is an OCI layout whose digests hold, whose user is not root, and whose layer is the content', async () => {
    const archive = join(scratch.path, 'four.tar')
    const { digest } = await writeOciArchive(spec([layer('four', files, 1000)]), archive)
    const read = (name: string): Buffer => execFileSync('tar', ['-xOf', archive, name])
    const blob = (of: { digest: string }): Buffer => {
      const bytes = read(`blobs/${of.digest.replace(':', '/')}`)
      expect(`sha256:${createHash('sha256').update(bytes).digest('hex')}`).toBe(of.digest)
      return bytes
    }
    const index = JSON.parse(String(read('index.json'))) as { manifests: { digest: string; annotations: object }[] }
    expect(index.manifests).toMatchObject([
      { digest, annotations: { 'io.containerd.image.name': 'docker.io/library/thing:1' } },
    ])
    const manifest = JSON.parse(String(blob({ digest }))) as {
      config: { digest: string }
      layers: { digest: string }[]
    }
    const config = JSON.parse(String(blob(manifest.config))) as { config: object; rootfs: { diff_ids: string[] } }
    expect(config.config).toMatchObject({ User: '1000:1000', Entrypoint: ['/bin/thing'], Env: ['PATH=/bin'] })
    const tar = gunzipSync(blob(manifest.layers[0] ?? { digest: '' }))
    expect(`sha256:${createHash('sha256').update(tar).digest('hex')}`).toBe(config.rootfs.diff_ids[0])
    const listed = execFileSync('tar', ['-tvf', '-', '--numeric-owner'], { input: tar, encoding: 'utf8' })
    expect(listed).toMatch(/-rwxr-xr-x 0\/0 .* \.\/bin\/thing\n/)
  })
})

describe('the bill of materials', () => {
  it('names what is installed and what ships, and nothing else', () => {
    const status = [
      'Package: git\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1:2.39.5-0+deb12u2\n',
      'Package: gone\nStatus: deinstall ok config-files\nArchitecture: amd64\nVersion: 1\n',
    ].join('\n')
    expect(debianComponents(status).map(({ purl }) => purl)).toEqual([
      'pkg:deb/debian/git@1%3A2.39.5-0%2Bdeb12u2?arch=amd64',
    ])
    const lock = {
      packages: {
        '': { version: '1.0.0' },
        'packages/cli': { version: '0.1.0' },
        'node_modules/@corral/cli': { link: true },
        'node_modules/@hono/node-server': { version: '1.2.3', license: 'MIT' },
        'node_modules/vitest': { version: '4.0.0', dev: true },
      },
    }
    expect(npmComponents(lock).map(({ purl }) => purl)).toEqual(['pkg:npm/%40hono/node-server@1.2.3'])
  })

  it('is the same text for the same content, whatever the order', () => {
    const image = { name: 'corral', digest: 'sha256:abc', epochSeconds: 0 }
    const [a, b] = [
      { name: 'a', version: '1', purl: 'pkg:npm/a@1' },
      { name: 'b', version: '2', purl: 'pkg:npm/b@2', license: 'MIT' },
    ] as const
    const document = spdxDocument({ ...image, components: [b, a] })
    expect(JSON.stringify(spdxDocument({ ...image, components: [a, b] }))).toBe(JSON.stringify(document))
    expect(document).toMatchObject({
      spdxVersion: 'SPDX-2.3',
      packages: [{ name: 'corral' }, { name: 'a' }, { name: 'b' }],
    })
  })
})

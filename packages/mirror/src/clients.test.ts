import { execFile, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { isFullSize } from '@corral/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ecosystems } from './ecosystems/index.js'
import { type Answer, scriptedRegistry, startMirror } from './mirror-under-test.test-suite.js'
import { mavenRepository } from './upstreams/maven-repository.js'

const execute = promisify(execFile)
const has = (program: string): boolean => spawnSync(program, ['--help'], { stdio: 'ignore' }).error === undefined
let directory = ''
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'corral-mirror-clients-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

async function files(folder: string, contents: Record<string, string>): Promise<string> {
  for (const [name, text] of Object.entries(contents)) {
    await mkdir(dirname(join(directory, folder, name)), { recursive: true })
    await writeFile(join(directory, folder, name), text)
  }
  return join(directory, folder)
}

/** A zip without anything that depends on the clock or a zip program. */
async function zip(name: string, contents: Record<string, string>): Promise<Buffer> {
  const path = join(directory, name)
  const program =
    'import json,sys,zipfile\nwith zipfile.ZipFile(sys.argv[1],"w") as z:\n for n,c in json.loads(sys.argv[2]).items(): z.writestr(n,c)'
  await execute('python3', ['-c', program, path, JSON.stringify(contents)])
  return readFile(path)
}

/** Runs a real client with the settings of its ecosystem and an otherwise empty environment and HOME. */
async function client(
  ecosystem: string,
  mirrorUrl: string,
  cwd: string,
  argv: [string, ...string[]],
  env: Record<string, string> = {},
): Promise<string> {
  const settings = ecosystems.find(({ name }) => name === ecosystem)?.clientSettings(mirrorUrl)
  const home = await mkdtemp(join(directory, 'home-'))
  for (const [path, text] of Object.entries(settings?.files ?? {})) {
    await mkdir(dirname(join(home, path)), { recursive: true })
    await writeFile(join(home, path), text)
  }
  const [program, ...args] = argv
  const { PATH = '', RUSTUP_HOME = `${process.env.HOME}/.rustup` } = process.env
  const { stdout } = await execute(program, args, {
    cwd,
    env: { PATH, HOME: home, RUSTUP_HOME, CARGO_HOME: `${home}/.cargo`, ...settings?.env, ...env },
  })
  return stdout
}

const registryOf = (answers: Record<string, Answer>) =>
  scriptedRegistry(({ url = '' }) => answers[decodeURIComponent(url)] ?? { status: 404 })

it('npm installs through the mirror and its lock file names the registry, not the mirror', async () => {
  const source = await files('npm-package', {
    'package.json': '{"name":"@acme/left","version":"1.0.0","main":"index.js"}',
    'index.js': 'module.exports = "from the mirror"',
  })
  await execute('npm', ['pack', '--pack-destination', directory], { cwd: source })
  const body = await readFile(join(directory, 'acme-left-1.0.0.tgz'))
  const answers: Record<string, Answer> = { '/@acme/left/-/left-1.0.0.tgz': { body } }
  await using registry = await registryOf(answers)
  const tarball = `${registry.url}/@acme/left/-/left-1.0.0.tgz`
  const integrity = `sha512-${createHash('sha512').update(body).digest('base64')}`
  const version = { name: '@acme/left', version: '1.0.0', dist: { tarball, integrity } }
  answers['/@acme/left'] = {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: '@acme/left', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } }),
  }
  await using mirror = await startMirror({ upstream: () => [{ url: new URL(`${registry.url}/`) }] })
  const project = await files('npm-project', {
    'package.json': '{"name":"p","version":"1.0.0","dependencies":{"@acme/left":"^1.0.0"}}',
  })
  await client('npm', mirror.url, project, ['npm', 'install', '--no-progress'])
  const { stdout } = await execute('node', ['-p', 'require("@acme/left")'], { cwd: project })
  expect(stdout.trim()).toBe('from the mirror')
  expect(await readFile(join(project, 'package-lock.json'), 'utf8')).not.toContain(mirror.url)
  // The second install is npm ci from that lock file, with nothing left upstream.
  for (const path of Object.keys(answers)) delete answers[path]
  await client('npm', mirror.url, project, ['npm', 'ci', '--no-progress'])
})

type PrivateRegistry = [name: string, at: { registry: string; tarball: string }]
const privateRegistries: PrivateRegistry[] = [
  [
    'Artifactory or Nexus, below a path',
    { registry: '/api/npm/all/', tarball: '/api/npm/all/@acme/left/-/left-1.0.0.tgz' },
  ],
  [
    'Azure, whose tarballs lie beside the registry',
    { registry: '/feed/npm/', tarball: '/id-1/npm/@acme/left/-/left-1.0.0.tgz' },
  ],
]
const likeThem: PrivateRegistry[] = [
  [
    'GitLab, which repeats the scope',
    { registry: '/api/v4/npm/', tarball: '/api/v4/npm/@acme/left/-/@acme/left-1.0.0.tgz' },
  ],
  ['GitHub, whose tarballs have paths of their own', { registry: '/', tarball: '/download/@acme/left/1.0.0/3f2a9c' }],
]
it.each(isFullSize ? [...privateRegistries, ...likeThem] : privateRegistries)(
  'npm and its lock file install from a private registry such as %s',
  async (_, at) => {
    const source = await files('private-package', {
      'package.json': '{"name":"@acme/left","version":"1.0.0","main":"index.js"}',
      'index.js': 'module.exports = "from the mirror"',
    })
    await execute('npm', ['pack', '--pack-destination', directory], { cwd: source })
    const body = await readFile(join(directory, 'acme-left-1.0.0.tgz'))
    const integrity = `sha512-${createHash('sha512').update(body).digest('base64')}`
    await using registry = await scriptedRegistry(({ url = '', headers: { authorization, host } }) => {
      if (authorization !== 'Bearer private') return { status: 401 }
      if (url === at.tarball) return { body }
      if (decodeURIComponent(url) !== `${at.registry}@acme/left`) return { body: 'what only the token may read' }
      const dist = { tarball: `http://${host}${at.tarball}`, integrity }
      const versions = { '1.0.0': { name: '@acme/left', version: '1.0.0', dist } }
      return { body: JSON.stringify({ name: '@acme/left', 'dist-tags': { latest: '1.0.0' }, versions }) }
    })
    const upstream = { url: new URL(at.registry, registry.url), authorization: 'Bearer private' }
    await using mirror = await startMirror({ upstream: () => [upstream] })
    const project = await mkdtemp(join(directory, 'private-'))
    await writeFile(join(project, 'package.json'), '{"dependencies":{"@acme/left":"^1.0.0"}}')
    await client('npm', mirror.url, project, ['npm', 'install', '--no-progress'])
    expect(await readFile(join(project, 'package-lock.json'), 'utf8')).toContain(registry.url + at.tarball)
    // Another machine's platform, which has nothing of it yet.
    await using empty = await startMirror({ upstream: () => [upstream] })
    await client('npm', empty.url, project, ['npm', 'ci', '--no-progress'])
    const { stdout } = await execute('node', ['-p', 'require("@acme/left")'], { cwd: project })
    expect(stdout.trim()).toBe('from the mirror')
    const other = await fetch(`${empty.url}/download/@acme/left/secret`, { headers: { 'user-agent': 'npm/11' } })
    expect([other.status, await other.text()]).toEqual([404, expect.stringContaining('knows no /download')])
  },
)

it.runIf(has('pip'))('pip installs a wheel whose file lies on another host', async () => {
  const wheel = await zip('left-1.0-py3-none-any.whl', {
    'left.py': 'said = "from the mirror"\n',
    'left-1.0.dist-info/METADATA': 'Metadata-Version: 2.1\nName: left\nVersion: 1.0\n',
    'left-1.0.dist-info/WHEEL': 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    'left-1.0.dist-info/RECORD': '',
  })
  await using fileHost = await registryOf({ '/packages/left-1.0-py3-none-any.whl': { body: wheel } })
  const sha256 = createHash('sha256').update(wheel).digest('hex')
  const href = `${fileHost.url}/packages/left-1.0-py3-none-any.whl#sha256=${sha256}`
  await using index = await registryOf({
    '/simple/left/': {
      headers: { 'content-type': 'text/html' },
      body: `<html><body><a href="${href}">left</a></body></html>`,
    },
  })
  await using mirror = await startMirror({ upstream: () => [{ url: new URL(`${index.url}/simple/`) }] })
  const target = join(directory, 'site')
  await client('pypi', mirror.url, directory, [
    'pip',
    'install',
    '-q',
    '--no-cache-dir',
    '--target',
    target,
    'left==1.0',
  ])
  const { stdout } = await execute('python3', ['-c', 'import left; print(left.said)'], {
    env: { PYTHONPATH: target, PATH: process.env.PATH },
  })
  expect(stdout.trim()).toBe('from the mirror')
})

it.runIf(has('pip'))('pip installs from a private index that wants its password for the files too', async () => {
  const wheel = await zip('right-1.0-py3-none-any.whl', {
    'right.py': 'said = "from the mirror"\n',
    'right-1.0.dist-info/METADATA': 'Metadata-Version: 2.1\nName: right\nVersion: 1.0\n',
    'right-1.0.dist-info/WHEEL': 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    'right-1.0.dist-info/RECORD': '',
  })
  await using elsewhere = await registryOf({ '/right-0.9-py3-none-any.whl': { body: wheel } })
  await using index = await scriptedRegistry(({ url, headers: { authorization } }) => {
    if (authorization !== 'Basic private') return { status: 401 }
    if (url === '/files/right-1.0-py3-none-any.whl') return { body: wheel }
    const links = ['../../files/right-1.0-py3-none-any.whl', `${elsewhere.url}/right-0.9-py3-none-any.whl`]
    return { headers: { 'content-type': 'text/html' }, body: links.map((href) => `<a href="${href}">x</a>`).join('') }
  })
  const upstream = { url: new URL(`${index.url}/simple/`), authorization: 'Basic private' }
  await using mirror = await startMirror({ upstream: () => [upstream] })
  const target = join(directory, 'private-site')
  const argv = ['pip', 'install', '-q', '--no-cache-dir', '--no-deps', '--target', target] as const
  await client('pypi', mirror.url, directory, [...argv, 'right==1.0'])
  expect(await readFile(join(target, 'right.py'), 'utf8')).toContain('from the mirror')
  // A host that the index only names is not told the password.
  await client('pypi', mirror.url, directory, [...argv, '--upgrade', 'right==0.9']).catch(() => undefined)
  expect(elsewhere.asked.map(({ headers }) => headers.authorization)).toEqual([undefined])
})

it.runIf(has('go'))('go downloads a module from the mirror', async () => {
  const module = 'module example.com/left\n\ngo 1.20\n'
  const archive = await zip('left.zip', {
    'example.com/left@v1.0.0/go.mod': module,
    'example.com/left@v1.0.0/left.go': 'package left\n\nconst Said = "from the mirror"\n',
  })
  const info = JSON.stringify({ Version: 'v1.0.0', Time: '2024-01-01T00:00:00Z' })
  await using registry = await registryOf({
    '/example.com/left/@v/list': { body: 'v1.0.0\n' },
    '/example.com/left/@v/v1.0.0.info': { body: info },
    '/example.com/left/@v/v1.0.0.mod': { body: module },
    '/example.com/left/@v/v1.0.0.zip': { body: archive },
  })
  await using mirror = await startMirror({ upstream: () => [{ url: new URL(`${registry.url}/`) }] })
  const project = await files('go-project', {
    'go.mod': 'module p\n\ngo 1.20\n\nrequire example.com/left v1.0.0\n',
    'main.go':
      'package main\n\nimport (\n\t"fmt"\n\n\t"example.com/left"\n)\n\nfunc main() { fmt.Println(left.Said) }\n',
  })
  // Vendoring downloads and unpacks without compiling Go's own library.
  for (const verb of ['tidy', 'vendor'])
    await client('go', mirror.url, project, ['go', 'mod', verb], { GOSUMDB: 'off', GOFLAGS: '-mod=mod' })
  expect(await readFile(join(project, 'vendor/example.com/left/left.go'), 'utf8')).toContain('from the mirror')
})

it.runIf(has('cargo'))(
  'cargo fetches a crate from the mirror and its lock file names the default registry',
  async () => {
    const source = await files('crate', {
      'left-1.0.0/Cargo.toml': '[package]\nname = "left"\nversion = "1.0.0"\nedition = "2021"\n',
      'left-1.0.0/src/lib.rs': 'pub const SAID: &str = "from the mirror";\n',
    })
    await execute('tar', ['czf', join(directory, 'left.crate'), '-C', source, 'left-1.0.0'])
    const body = await readFile(join(directory, 'left.crate'))
    const cksum = createHash('sha256').update(body).digest('hex')
    const line = JSON.stringify({ name: 'left', vers: '1.0.0', deps: [], cksum, features: {}, yanked: false })
    await using registry = await registryOf({
      '/le/ft/left': { body: `${line}\n` },
      '/dl/left/1.0.0/download': { body },
    })
    await using mirror = await startMirror({
      upstream: () => [{ url: new URL(`${registry.url}/`), download: `${registry.url}/dl` }],
    })
    const project = await files('cargo-project', {
      'Cargo.toml': '[package]\nname = "p"\nversion = "0.0.0"\nedition = "2021"\n\n[dependencies]\nleft = "1"\n',
      'src/main.rs': 'fn main() { println!("{}", left::SAID) }\n',
    })
    expect((await client('crates', mirror.url, project, ['cargo', 'run', '-q'])).trim()).toBe('from the mirror')
    const lock = await readFile(join(project, 'Cargo.lock'), 'utf8')
    expect(lock).toContain(cksum)
    expect(lock).not.toContain(mirror.url)
  },
)

it.runIf(has('mvn'))(
  'Maven reads a parent from the mirror, and tells this machine which repository it asks',
  async () => {
    const coordinates = '<groupId>org.acme</groupId><artifactId>parent</artifactId><version>1.0</version>'
    const model = '<modelVersion>4.0.0</modelVersion>'
    const path = '/releases/org/acme/parent/1.0/parent-1.0.pom'
    const body = `<project>${model}${coordinates}<packaging>pom</packaging></project>`
    await using registry = await registryOf({ [path]: { body } })
    await using mirror = await startMirror({ upstream: () => [{ url: new URL(`${registry.url}/releases/`) }] })
    const project = await files('maven-project', {
      'pom.xml': `<project>${model}<parent>${coordinates}</parent><artifactId>p</artifactId><packaging>pom</packaging></project>`,
    })
    const { M2_HOME, JAVA_HOME } = process.env
    const java = { ...(M2_HOME && { M2_HOME }), ...(JAVA_HOME && { JAVA_HOME }) }
    const home = await files(
      'maven-home',
      ecosystems.find(({ name }) => name === 'maven')?.clientSettings(mirror.url).files ?? {},
    )
    // Java takes the home directory from the account, not from HOME.
    const env = { PATH: process.env.PATH ?? '', MAVEN_OPTS: `-Duser.home=${home}`, ...java }
    await execute('mvn', ['-B', '-q', 'validate'], { cwd: project, env })
    expect(registry.asked.map(({ url }) => url)).toContain(path)
    expect(await mavenRepository(env)).toEqual({ id: 'corral', url: `${mirror.url}/maven` })
  },
)

it('pnpm since 11, which reads no variable of npm, is told by its own, and fetches no other pnpm where it has no network', () => {
  const settings = ecosystems.find(({ name }) => name === 'npm')?.clientSettings('http://127.0.0.1:8788')
  expect(settings).toMatchObject({
    env: { pnpm_config_registry: 'http://127.0.0.1:8788/npm/', npm_config_registry: 'http://127.0.0.1:8788/npm/' },
    files: { '.config/pnpm/config.yaml': 'pmOnFail: ignore\n' },
  })
})

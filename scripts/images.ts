/**
 * Builds the images of a cluster without Docker, from package registries alone: `npm run images`. An OCI archive and an
 * SPDX bill of materials per image go to build/images; the sizes are held against a budget.
 *   --languages    also a sandbox with Python, Go, Rust and a C compiler beside Node, as `corral/languages`
 *   --arch ARCH    for another machine: x64 or arm64. Its Debian is built by an emulator, and the files end in its name
 *   --out DIR      where they go instead of build/images
 *   --agent NAME   also a sandbox with that coding agent in it, as `corral/NAME`; repeat it for more
 */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { baseLayer, baseObstacles, languagePackages } from './images/base-layer.js'
import { writeCompiled } from './images/compiled.js'
import { type Architecture, debianName } from './images/foreign-machine.js'
import { type ImageSpec, writeOciArchive } from './images/oci-archive.js'
import { type Component, debianComponents, npmComponents, spdxDocument } from './images/sbom.js'

const root = join(import.meta.dirname, '..')
const built = join(root, 'packages/cli/dist/bundle')
const scratch = mkdtempSync(join(tmpdir(), 'corral-images-'))
/** A copy: a build meanwhile would give the images of one run different programs. */
const bundle = join(scratch, 'bundle')
const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'corral-images')
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
/** Of the packages in a release; the same in every build of it. */
const epochSeconds = Number(process.env.SOURCE_DATE_EPOCH ?? Date.UTC(2026, 0, 1) / 1000)
const megabyte = 1_000_000

const { values: flags } = parseArgs({
  options: {
    agent: { type: 'string', multiple: true, default: [] },
    languages: { type: 'boolean', default: false },
    arch: { type: 'string', default: process.arch },
    out: { type: 'string', default: join(root, 'build/images') },
  },
})
const { out } = flags
const architecture = architectureOf(flags.arch)
const isForeign = architecture !== process.arch

interface Plan {
  readonly file: string
  readonly reference: string
  readonly budgetMegabytes: number
  /** Debian packages of its base. */
  readonly packages?: readonly string[]
  /** What fills the image's own layers, the lowest first. */
  readonly fills: readonly ((layer: string) => void)[]
  readonly spec: Pick<ImageSpec, 'entrypoint' | 'env' | 'workingDir'> & Pick<Partial<ImageSpec>, 'cmd'>
}

const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const sandboxSpec: Plan['spec'] = {
  entrypoint: [
    ...['/usr/bin/tini', '--', 'node', '--max-old-space-size=48', '--max-semi-space-size=2'],
    '/opt/corral/daemon.mjs',
  ],
  env: { PATH: path, HOME: '/home/agent', LANG: 'C.UTF-8' },
  workingDir: '/workspace',
}
const plans: readonly Plan[] = [
  {
    file: 'corral',
    reference: `docker.io/library/corral:${version}`,
    budgetMegabytes: 130,
    fills: [fillServer],
    spec: {
      entrypoint: ['/usr/bin/tini', '--', '/usr/local/bin/corral'],
      cmd: ['--help'],
      env: { PATH: path, HOME: '/tmp', LANG: 'C.UTF-8', NODE_ENV: 'production' },
      workingDir: '/',
    },
  },
  {
    file: 'corral-daemon',
    reference: `docker.io/corral/daemon:${version}`,
    budgetMegabytes: 120,
    fills: [fillDaemon],
    spec: sandboxSpec,
  },
  ...(flags.languages
    ? [
        {
          file: 'corral-languages',
          reference: `docker.io/corral/languages:${version}`,
          budgetMegabytes: 600,
          packages: languagePackages,
          fills: [fillDaemon],
          spec: sandboxSpec,
        },
      ]
    : []),
  ...flags.agent.map((name) => ({
    file: `corral-${name}`,
    reference: `docker.io/corral/${name}:${version}`,
    budgetMegabytes: 400,
    fills: [fillDaemon, (layer: string) => fillAgent(name, layer)],
    spec: sandboxSpec,
  })),
]

try {
  process.exitCode = await main()
} finally {
  rmSync(scratch, { recursive: true, force: true })
}

async function main(): Promise<number> {
  const missing = baseObstacles()
  if (!existsSync(join(built, 'main.cjs'))) missing.push('the bundle is missing: run `npm run build`')
  if (isForeign && flags.agent.length > 0) missing.push('agents are installed for this machine alone')
  if (missing.length > 0) {
    process.stderr.write(`images: not built here: ${missing.join('; ')}\n`)
    return 3
  }
  mkdirSync(out, { recursive: true })
  cpSync(built, bundle, { recursive: true })
  let isOver = false
  process.stderr.write('images: the Debian base (minutes the first time)\n')
  const node = nodeLayer()
  for (const plan of plans) {
    const base = baseLayer(cache, { epochSeconds, architecture, packages: plan.packages })
    const own = plan.fills.map((fill, index) => {
      const layer = join(scratch, `${plan.file}-${index}`)
      mkdirSync(layer)
      fill(layer)
      return layer
    })
    const spec: ImageSpec = {
      ...plan.spec,
      reference: plan.reference,
      architecture: debianName[architecture],
      layers: [base, node, ...own],
      layerCache: join(cache, 'layers'),
      user: '1000:1000',
      labels: { 'org.opencontainers.image.version': version, 'org.opencontainers.image.licenses': 'Apache-2.0' },
      epochSeconds,
    }
    const file = join(out, isForeign ? `${plan.file}-${architecture}` : plan.file)
    const written = await writeOciArchive(spec, `${file}.tar`)
    const components = componentsOf(base)
    const document = spdxDocument({ name: plan.file, digest: written.digest, epochSeconds, components })
    writeFileSync(`${file}.spdx.json`, `${JSON.stringify(document, null, 1)}\n`)
    const megabytes = written.compressedBytes / megabyte
    const isWithin = megabytes <= plan.budgetMegabytes
    isOver ||= !isWithin
    const layers = written.layerBytes.map((bytes) => (bytes / megabyte).toFixed(1)).join(' + ')
    process.stdout.write(
      `${isWithin ? 'yes' : 'NO '} ${plan.reference} ${written.digest} ${megabytes.toFixed(1)} MB compressed (${layers}), budget ${plan.budgetMegabytes} MB\n`,
    )
  }
  return isOver ? 1 : 0
}

/** The third-party files of an image. */
function componentsOf(base: string): Component[] {
  const status = execFileSync('tar', ['-xOf', base, './var/lib/dpkg/status'], { encoding: 'utf8', maxBuffer: 64 << 20 })
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Parameters<typeof npmComponents>[0]
  const { node } = process.versions
  return [
    ...debianComponents(status),
    ...npmComponents(lock),
    { name: 'node', version: node, purl: `pkg:generic/node@${node}`, license: 'MIT' },
  ]
}

/** Node of the version that runs this, from npm: the code that V8 compiled for the bundle fits it. */
function nodeLayer(): string {
  const place = join(scratch, 'node-package')
  unpackNpm(`node-linux-${architecture}@${process.versions.node}`, place)
  const layer = join(scratch, 'node')
  mkdirSync(join(layer, 'usr/local/bin'), { recursive: true })
  cpSync(join(place, 'bin/node'), join(layer, 'usr/local/bin/node'))
  chmodSync(join(layer, 'usr/local/bin/node'), 0o755)
  return layer
}

/** A package of the registry, unpacked and not installed. */
function unpackNpm(name: string, place: string): void {
  mkdirSync(place, { recursive: true })
  const quiet = { cwd: place, stdio: ['ignore', 'ignore', 'inherit'] as 'inherit'[], timeout: 600_000 }
  execFileSync('npm', ['pack', '--silent', name], quiet)
  execFileSync('sh', ['-c', 'tar -xzf *.tgz --strip-components=1 && rm *.tgz'], quiet)
}

function architectureOf(text: string): Architecture {
  if (text === 'x64' || text === 'arm64') return text
  throw new Error(`--arch ${text}: there are x64 and arm64`)
}

function fillServer(layer: string): void {
  copyBundle(layer, ['corral.js', 'main.cjs', 'package.json', 'web'])
  const program = '/opt/corral/main.cjs'
  // What V8 compiled is for the machine it ran on.
  if (!isForeign) writeCompiled(join(bundle, 'main.cjs'), program, join(layer, `${program}.compiled`))
  mkdirSync(join(layer, 'usr/local/bin'), { recursive: true })
  symlinkSync('/opt/corral/corral.js', join(layer, 'usr/local/bin/corral'))
}

function fillDaemon(layer: string): void {
  // Compiled for this machine's processor, where it has a compiler; the daemon does without.
  const compiled = !isForeign && existsSync(join(bundle, 'undumpable.node')) ? ['undumpable.node'] : []
  copyBundle(layer, ['daemon.mjs', 'sandboxd.mjs', ...compiled, 'node_modules'])
  if (isForeign) replaceTerminals(join(layer, 'opt/corral/node_modules/@lydell'))
  for (const name of ['workspace', 'home/agent']) {
    mkdirSync(join(layer, name), { recursive: true })
    chmodSync(join(layer, name), 0o777)
  }
}

/** The one part of the daemon that is compiled and that it cannot do without. */
function replaceTerminals(place: string): void {
  const { version: wanted } = JSON.parse(readFileSync(join(place, 'node-pty/package.json'), 'utf8')) as {
    version: string
  }
  rmSync(join(place, `node-pty-linux-${process.arch}`), { recursive: true })
  const name = `node-pty-linux-${architecture}`
  unpackNpm(`@lydell/${name}@${wanted}`, join(place, name))
}

/** The agent of this release where sandboxes look for it, installed by our own command and kept in the cache. */
function fillAgent(name: string, layer: string): void {
  const place = join(cache, 'agents')
  mkdirSync(place, { recursive: true })
  execFileSync(process.execPath, [join(bundle, 'corral.js'), 'agent', 'install', name, '--data-dir', place], {
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: 20 * 60_000,
  })
  const target = join(layer, 'opt/corral/agents')
  mkdirSync(target, { recursive: true })
  // Links stay links: some agents have their program under two names.
  execFileSync('cp', ['-a', `${join(place, 'agents')}/.`, target], { timeout: 600_000 })
}

function copyBundle(layer: string, names: readonly string[]): void {
  const place = join(layer, 'opt/corral')
  mkdirSync(place, { recursive: true })
  for (const name of names) cpSync(join(bundle, name), join(place, name), { recursive: true })
}

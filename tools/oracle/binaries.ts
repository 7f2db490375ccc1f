import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  createReadStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { OracleError } from './oracle-error.js'

const here = dirname(fileURLToPath(import.meta.url))

/** Which module builds a program, and from which package of which dependency. */
interface Recipe {
  readonly module:
    | 'kubernetes'
    | 'kube-proxy'
    | 'etcd'
    | 'agent-sandbox'
    | 'helm'
    | 'go-client'
    | 'containerd'
    | 'coredns'
    | 'gvisor'
  readonly dependency: string
  readonly program: string
  /** Without C libraries of this machine, so that the program also runs inside an image. */
  readonly isStatic?: boolean
  /** A line of the dependency that does not run everywhere, with what stands there instead. */
  readonly patch?: SourcePatch
}

interface SourcePatch {
  /** Below the dependency. */
  readonly file: string
  readonly from: string
  readonly to: string
}

const kubernetes = (name: string): Recipe => ({
  module: 'kubernetes',
  dependency: 'k8s.io/kubernetes',
  program: `k8s.io/kubernetes/cmd/${name}`,
})

const containerd = (name: string): Recipe => ({
  module: 'containerd',
  dependency: 'github.com/containerd/containerd/v2',
  program: `github.com/containerd/containerd/v2/cmd/${name}`,
  isStatic: true,
})

const gvisor = (program: string, patch?: SourcePatch): Recipe => ({
  ...(patch ? { patch } : {}),
  module: 'gvisor',
  dependency: 'gvisor.dev/gvisor',
  program: `gvisor.dev/gvisor/${program}`,
  isStatic: true,
})

const recipes = {
  etcd: { module: 'etcd', dependency: 'go.etcd.io/etcd/server/v3', program: 'go.etcd.io/etcd/server/v3' },
  'kube-apiserver': kubernetes('kube-apiserver'),
  'kube-controller-manager': kubernetes('kube-controller-manager'),
  'kube-scheduler': kubernetes('kube-scheduler'),
  kubelet: kubernetes('kubelet'),
  kubectl: kubernetes('kubectl'),
  // On its own: it needs modules that the others do without.
  'kube-proxy': { ...kubernetes('kube-proxy'), module: 'kube-proxy' },
  containerd: containerd('containerd'),
  ctr: containerd('ctr'),
  'containerd-shim-runc-v2': containerd('containerd-shim-runc-v2'),
  // With few plugins: the clouds of the others build for minutes.
  coredns: { module: 'coredns', dependency: 'github.com/coredns/coredns', program: '.', isStatic: true },
  runsc: gvisor('runsc'),
  // Root in a container of its own may not lower the score, and then the shim would not start.
  'containerd-shim-runsc-v1': gvisor('shim', {
    file: 'pkg/shim/v1/manager.go',
    from: 'oomScoreMax = -999',
    to: 'oomScoreMax = 0',
  }),
  'agent-sandbox-controller': {
    module: 'agent-sandbox',
    dependency: 'sigs.k8s.io/agent-sandbox',
    program: 'sigs.k8s.io/agent-sandbox/cmd/agent-sandbox-controller',
  },
  // Upstream's runtime inside sandboxes.
  sandboxd: {
    module: 'agent-sandbox',
    dependency: 'sigs.k8s.io/agent-sandbox',
    program: 'sigs.k8s.io/agent-sandbox/packages/sandboxd/cmd/sandboxd',
  },
  helm: { module: 'helm', dependency: 'helm.sh/helm/v3', program: 'helm.sh/helm/v3/cmd/helm' },
  // The suite's own program on upstream's SDK, client-go and controller-runtime.
  'go-client': { module: 'go-client', dependency: 'sigs.k8s.io/agent-sandbox', program: '.' },
} as const satisfies Record<string, Recipe>

export type BinaryName = keyof typeof recipes

/** A built program as results name it. */
export interface OracleBinary {
  readonly name: BinaryName
  readonly path: string
  /** Of the Go module it comes from. */
  readonly version: string
  readonly sha256: string
}

export type OracleBinaries<Names extends BinaryName = BinaryName> = Readonly<Record<Names, OracleBinary>>

export const controlPlanePrograms = ['etcd', 'kube-apiserver', 'kube-controller-manager'] as const

/** Where binaries are kept: outside the tree, shared by every clone of it. */
export function oracleCache(env: NodeJS.ProcessEnv = process.env): string {
  return join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'corral-oracle')
}

/** The Go tool's version line, or undefined where there is no Go. */
export async function findGo(): Promise<string | undefined> {
  try {
    return (await promisify(execFile)('go', ['version'], { timeout: 20_000 })).stdout.trim()
  } catch {
    return undefined // not installed, or not able to run: the same to us
  }
}

export interface EnsureOptions {
  /** Hears one line per program that has to be built. Standard error by default. */
  say?: (line: string) => void
  signal?: AbortSignal
}

/**
 * The programs asked for, built where the cache has none made from these modules by this Go. Rejects with an
 * `OracleError` of code `GoMissing` when there is no Go; safe to repeat and to run twice at a time.
 */
export async function ensureOracle<Names extends BinaryName>(
  names: readonly Names[],
  options: EnsureOptions = {},
): Promise<OracleBinaries<Names>> {
  const go = await findGo()
  if (!go)
    throw new OracleError(
      'GoMissing',
      'Go is not installed: the real Kubernetes cannot be built, its suites are skipped',
    )
  const built: [Names, OracleBinary][] = []
  for (const name of names) built.push([name, await ensureBinary(name, go, options)])
  return Object.fromEntries(built) as OracleBinaries<Names> // one entry per name, from the loop above
}

async function ensureBinary(name: BinaryName, go: string, options: EnsureOptions): Promise<OracleBinary> {
  const say = options.say ?? ((line) => process.stderr.write(`oracle: ${line}\n`))
  const recipe: Recipe = recipes[name]
  const directory = moduleRoot(recipe.module)
  const version = moduleVersion(directory, recipe.dependency)
  const flags = linkerFlags(recipe, version)
  const bin = join(oracleCache(), 'bin')
  const path = join(bin, name)
  const stampPath = `${path}.stamp`
  const stamp = fingerprint([
    read(join(directory, 'go.mod')),
    read(join(directory, 'go.sum')),
    go,
    flags,
    recipe.program,
    ...(recipe.patch ? [JSON.stringify(recipe.patch)] : []),
    ...(recipe.program === '.' ? goSources(directory) : []),
  ])
  if (!existsSync(path) || readIfThere(stampPath) !== stamp) {
    mkdirSync(bin, { recursive: true })
    const startedMs = Date.now()
    say(`building ${name} ${version} (minutes the first time)`)
    const temporary = `${path}.${process.pid}.tmp`
    const place = recipe.patch ? await patchedModule(recipe, recipe.patch) : { directory, program: recipe.program }
    const args = ['build', '-ldflags', flags, '-o', temporary, place.program]
    await goBuild(place.directory, args, { isStatic: recipe.isStatic ?? false, signal: options.signal })
    renameSync(temporary, path)
    writeFileSync(stampPath, stamp)
    say(`built ${name} in ${Math.round((Date.now() - startedMs) / 1000)} s`)
  }
  return { name, path, version, sha256: await hashFile(path) }
}

/** A copy of the dependency in the cache, with the one line changed: the Go cache itself may not be. */
async function patchedModule(
  { module, dependency, program }: Recipe,
  { file, from, to }: SourcePatch,
): Promise<{ directory: string; program: string }> {
  const directory = join(oracleCache(), 'source', module)
  rmSync(directory, { recursive: true, force: true })
  cpSync(await moduleDirectory(module, dependency), directory, { recursive: true })
  await promisify(execFile)('chmod', ['-R', 'u+w', directory])
  const text = read(join(directory, file))
  if (!text.includes(from)) throw new OracleError('BuildFailed', `${file} of ${dependency} has no line "${from}"`)
  writeFileSync(join(directory, file), text.replace(from, to))
  return { directory, program: `.${program.slice(dependency.length)}` }
}

/** Where a module lies: here, but for the client program, which belongs to the suite that runs it. */
function moduleRoot(module: Recipe['module']): string {
  return module === 'go-client' ? join(here, '../../conformance/go-client') : join(here, module)
}

function goSources(directory: string): string[] {
  const names = readdirSync(directory).filter((name) => name.endsWith('.go'))
  return names.sort().map((name) => read(join(directory, name)))
}

/** Without these Kubernetes programs call themselves `v0.0.0-master`, which kubectl cannot parse. */
function linkerFlags(recipe: Recipe, version: string): string {
  if (recipe.dependency !== 'k8s.io/kubernetes') return '-s -w'
  const [major = '', minor = ''] = version.replace(/^v/, '').split('.')
  const set = (name: string, value: string): string => `-X k8s.io/component-base/version.${name}=${value}`
  const tree = set('gitTreeState', 'clean')
  return ['-s -w', set('gitVersion', version), set('gitMajor', major), set('gitMinor', minor), tree].join(' ')
}

function moduleVersion(directory: string, dependency: string): string {
  const line = read(join(directory, 'go.mod'))
    .split('\n')
    .map((text) => text.trim().replace(/^require /, ''))
    .find((text) => text.startsWith(`${dependency} v`))
  const version = line?.split(' ')[1]
  if (!version) throw new OracleError('BuildFailed', `${directory}/go.mod does not require ${dependency}`)
  return version
}

/** Directory of a dependency's sources in the Go cache, fetched where it is not there yet: upstream's manifests lie there. */
export async function moduleDirectory(module: Recipe['module'], dependency: string): Promise<string> {
  const go = async (...args: string[]): Promise<string> =>
    (await promisify(execFile)('go', args, { cwd: moduleRoot(module), timeout: 300_000 })).stdout.trim()
  const known = await go('list', '-mod=mod', '-m', '-f', '{{.Dir}}', dependency)
  if (known !== '') return known
  const { Dir } = JSON.parse(await go('mod', 'download', '-json', dependency)) as { Dir?: string }
  if (!Dir) throw new OracleError('BuildFailed', `the Go tool has not fetched ${dependency}`)
  return Dir
}

function goBuild(
  directory: string,
  args: readonly string[],
  { isStatic, signal }: { isStatic: boolean; signal: AbortSignal | undefined },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn('go', args, {
      cwd: directory,
      env: { ...process.env, ...(isStatic ? { CGO_ENABLED: '0' } : {}) },
      stdio: ['ignore', 'ignore', 'pipe'],
      ...(signal ? { signal } : {}),
    })
    let errors = ''
    child.stderr.on('data', (chunk: Buffer) => {
      errors = `${errors}${chunk.toString()}`.slice(-4000)
    })
    child.once('error', (cause) => reject(new OracleError('BuildFailed', 'the Go tool cannot be run', { cause })))
    child.once('close', (code) => {
      if (code === 0) return resolve()
      const output = args[args.indexOf('-o') + 1]
      if (output) rmSync(output, { force: true })
      reject(new OracleError('BuildFailed', `go ${args[0]} of ${args.at(-1)} failed:\n${errors}`))
    })
  })
}

/** SHA-256 of a file, in hex. */
export async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path, { highWaterMark: 1024 * 1024 }), hash)
  return hash.digest('hex')
}

function fingerprint(parts: readonly string[]): string {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part).update('\0')
  return hash.digest('hex')
}

const read = (path: string): string => readFileSync(path, 'utf8')
const readIfThere = (path: string): string | undefined => (existsSync(path) ? read(path) : undefined)

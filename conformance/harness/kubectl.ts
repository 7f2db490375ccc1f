import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { hashFile } from '../../tools/oracle/binaries.js'
import { Skipped } from './check.js'

export const kubectlVersions = ['1.29', '1.30', '1.31', '1.32', '1.33'] as const
/** The version that checks use when none matters. */
export const anyKubectl = '1.33'

/** The versioned binaries lie where the `kubectl` on the PATH links to, or on the PATH themselves. */
export function findKubectl(version: string): string | undefined {
  const directories = (process.env.PATH ?? '').split(delimiter)
  const links = directories.map((directory) => join(directory, 'kubectl')).filter((path) => existsSync(path))
  const roots = [...directories, ...links.map((path) => dirname(realpathSync(path)))]
  return roots.map((directory) => join(directory, `kubectl.${version}`)).find((path) => existsSync(path))
}

export interface RunResult {
  readonly code: number
  readonly out: string
  readonly err: string
  readonly bytes: Buffer
}

export interface RunOptions {
  input?: string | Uint8Array
  env?: NodeJS.ProcessEnv
  timeoutMs?: number
  cwd?: string
}

/** Runs a program to its end. A program that outlives its time is killed and that is an error. */
export function runProgram(path: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const { timeoutMs = 240_000, input, env = process.env, cwd } = options
  return new Promise((resolve, reject) => {
    const child = spawn(path, args, { env, stdio: ['pipe', 'pipe', 'pipe'], ...(cwd ? { cwd } : {}) })
    const out: Buffer[] = []
    const err: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => out.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => err.push(chunk))
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      child.kill('SIGKILL')
    }, timeoutMs)
    child.once('error', reject)
    child.once('close', (code) => {
      clearTimeout(timer)
      const bytes = Buffer.concat(out)
      const result = { code: code ?? 1, out: bytes.toString(), err: Buffer.concat(err).toString(), bytes }
      if (!isLate) return resolve(result)
      reject(new Error(`${path} ${args.join(' ')}: still running after ${timeoutMs} ms\n${result.out}${result.err}`))
    })
    child.stdin.on('error', () => {}) // it may end before it has read its input
    child.stdin.end(input)
  })
}

/** The binary of a version; skips the check where it is not installed. */
export function kubectlPath(version: string): string {
  const path = findKubectl(version)
  if (!path) throw new Skipped(`kubectl ${version} is not installed`)
  return path
}

/** A program as result files name it. */
export interface BinaryFact {
  readonly name: string
  readonly version: string
  readonly sha256: string
}

const facts = new Map<string, Promise<BinaryFact>>()

/** Which kubectl that is, exactly. Asked and hashed once. */
export function kubectlFact(version: string): Promise<BinaryFact> {
  let fact = facts.get(version)
  if (!fact) {
    fact = describe(kubectlPath(version))
    facts.set(version, fact)
  }
  return fact
}

async function describe(path: string): Promise<BinaryFact> {
  const [answer, sha256] = await Promise.all([
    runProgram(path, ['version', '--client', '-o', 'json'], { env: { PATH: process.env.PATH } }),
    hashFile(path),
  ])
  const { clientVersion } = JSON.parse(answer.out) as { clientVersion: { gitVersion: string } } // kubectl's own format
  return { name: 'kubectl', version: clientVersion.gitVersion, sha256 }
}

/** What kubectl sees: our kubeconfig, and a home of its own so that no cache is shared. */
export function kubectlEnvironment(kubeconfig: string, home: string): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: home, KUBECONFIG: kubeconfig }
}

export const newHome = (): string => mkdtempSync(join(tmpdir(), 'corral-conformance-'))

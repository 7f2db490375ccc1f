import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { oracleCache } from '../../tools/oracle/index.js'
import { Skipped } from '../harness/check.js'
import type { Context } from '../harness/context.js'
import { anyKubectl, findKubectl, type RunResult, runProgram } from '../harness/kubectl.js'

/** What the virtual environment holds. */
export const pythonPackages: readonly string[] = ['kubernetes==34.1.0', 'k8s-agent-sandbox==1.0.8']
/** The same client with its asynchronous side and the protocol of `sandboxd`. */
const judgePackages: readonly string[] = ['kubernetes==34.1.0', 'k8s-agent-sandbox[async,grpc]==1.0.8']
const here = dirname(fileURLToPath(import.meta.url))
const installTimeoutMs = 900_000
let environment: Promise<string> | undefined

/**
 * Installs the Python clients where they are missing, which downloads some 30 MB. A suite calls it before its first
 * check, so that no check pays for the download with its own time. A failure is told by the checks that need them.
 */
export async function preparePython(): Promise<void> {
  environment ??= ensureEnvironment()
  await environment.catch(() => undefined)
}

/** Runs one function of `clients/checks.py` with the official Python client; skips where Python or pip is missing. */
export async function runPython(
  t: Context,
  name: string,
  args: readonly string[],
  timeoutMs = 240_000,
): Promise<RunResult> {
  environment ??= ensureEnvironment()
  const python = await environment
  const env = { ...t.kubectlEnv(), PATH: `${kubectlDirectory(t)}${delimiter}${process.env.PATH ?? ''}` }
  const result = await runProgram(python, [join(here, 'checks.py'), name, ...args], { env, timeoutMs })
  if (result.code !== 0) throw new Error(`python ${name}: exit ${result.code}\n${result.out}${result.err}`)
  return result
}

/** A directory in which `kubectl` is a version that is known: the SDK runs whatever it finds under that name. */
function kubectlDirectory(t: Context): string {
  const directory = join(t.directory(), 'bin')
  mkdirSync(directory, { recursive: true })
  const link = join(directory, 'kubectl')
  const path = findKubectl(anyKubectl)
  if (path && !existsSync(link)) symlinkSync(path, link)
  return directory
}

/** The interpreter with every side of upstream's client; skips where Python or pip is missing. */
export function judgePython(): Promise<string> {
  return ensureEnvironment(judgePackages)
}

/** The interpreter of a virtual environment in the cache, made when missing. */
async function ensureEnvironment(packages: readonly string[] = pythonPackages): Promise<string> {
  const name = packages.join('+').replace(/==|[[\],]+/g, '-')
  const directory = join(oracleCache(), 'python', name)
  const python = join(directory, 'bin', 'python')
  if (existsSync(join(directory, 'complete'))) return python
  process.stderr.write('conformance: installing the Python clients, once; this takes a minute or more\n')
  mkdirSync(dirname(directory), { recursive: true })
  const run = async (program: string, args: string[]): Promise<void> => {
    const result = await runProgram(program, args, { timeoutMs: installTimeoutMs }).catch((cause: unknown) => {
      throw new Skipped(`the Python clients cannot be installed: ${String(cause)}`)
    })
    if (result.code !== 0)
      throw new Skipped(`the Python clients cannot be installed: ${result.err.trim().split('\n').at(-1)}`)
  }
  // Two suites may do this at once: each makes its own, and the first one that is whole stays.
  const half = `${directory}.${process.pid}.part`
  try {
    await run('python3', ['-m', 'venv', half])
    const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check']
    await run(join(half, 'bin', 'python'), [...install, ...packages])
    mkdirSync(join(half, 'complete'))
    if (!existsSync(join(directory, 'complete'))) rmSync(directory, { recursive: true, force: true })
    if (!existsSync(directory)) renameSync(half, directory)
    return python
  } finally {
    rmSync(half, { recursive: true, force: true })
  }
}

import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { oracleCache } from '../../tools/oracle/index.js'
import { Skipped } from '../harness/check.js'
import type { Context } from '../harness/context.js'
import { anyKubectl, findKubectl, type RunResult, runProgram } from '../harness/kubectl.js'

/** What the virtual environment holds. */
export const pythonPackages = ['kubernetes==34.1.0', 'k8s-agent-sandbox==1.0.8']
const here = dirname(fileURLToPath(import.meta.url))
let environment: Promise<string> | undefined

/** Runs one function of `clients/checks.py` with the official Python client; skips where Python or pip is missing. */
export async function runPython(
  t: Context,
  name: string,
  args: readonly string[],
  timeoutMs = 60_000,
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

/** The interpreter of a virtual environment in the cache, made when missing. */
async function ensureEnvironment(): Promise<string> {
  const name = pythonPackages.join('+').replaceAll('==', '-')
  const directory = join(oracleCache(), 'python', name)
  const python = join(directory, 'bin', 'python')
  if (existsSync(join(directory, 'complete'))) return python
  mkdirSync(dirname(directory), { recursive: true })
  const run = async (program: string, args: string[]): Promise<void> => {
    const result = await runProgram(program, args, { timeoutMs: 240_000 }).catch((cause: unknown) => {
      throw new Skipped(`the Python clients cannot be installed: ${String(cause)}`)
    })
    if (result.code !== 0)
      throw new Skipped(`the Python clients cannot be installed: ${result.err.trim().split('\n').at(-1)}`)
  }
  try {
    await run('python3', ['-m', 'venv', directory])
    await run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...pythonPackages])
    mkdirSync(join(directory, 'complete'))
    return python
  } catch (error) {
    rmSync(directory, { recursive: true, force: true })
    throw error
  }
}

import { ensureOracle, findGo, type OracleBinaries, upstreamDirectory } from '../../tools/oracle/index.js'
import { Skipped } from '../harness/check.js'
import type { Context } from '../harness/context.js'
import { runProgram } from '../harness/kubectl.js'

let building: Promise<OracleBinaries<'go-client'>> | undefined

/** Before checks with a time limit: what Go has to build and fetch takes minutes the first time. A failure is told by the check. */
export async function prepareGo(): Promise<void> {
  if (!(await findGo())) return
  building ??= ensureOracle(['go-client'])
  await Promise.allSettled([building, upstreamDirectory()])
}

/** Runs one command of `go-client/` in the check's namespace and answers its lines; skips where Go is missing. */
export async function runGoClient(t: Context, command: 'sdk' | 'client-go' | 'controller'): Promise<string[]> {
  if (!(await findGo())) throw new Skipped('Go is not installed')
  building ??= ensureOracle(['go-client'])
  const { 'go-client': binary } = await building
  const { name, version, sha256 } = binary
  t.usesBinary({ name, version, sha256 })
  const args = [command, await t.ns()]
  const result = await runProgram(binary.path, args, { env: t.kubectlEnv(), timeoutMs: 120_000 })
  if (result.code !== 0) throw new Error(`go-client ${command}: exit ${result.code}\n${result.out}${result.err}`)
  return result.out.trim().split('\n')
}

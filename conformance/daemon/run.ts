/**
 * Runtimes and clients of sandboxes judged against upstream's: our daemon by upstream's Python clients, synchronous and
 * asynchronous, by its Go SDK and by our own SDK, over the legacy runtime's protocol on 8888 and sandboxd's on 8080 and 9090; and
 * our SDK by upstream's sandboxd. `npm run conformance:daemon`; what has no Python, Go or kubectl is skipped, with a line for each.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, symlinkSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { findKubectl, startPlatformProcess } from '@corral/testing'
import { ensureOracle, findGo } from '../../tools/oracle/index.js'
import { judgePython } from '../clients/python.js'
import { Skipped } from '../harness/check.js'
import { judgeWithSdk, reporter } from './judge.js'

process.exitCode = await main()

async function main(): Promise<number> {
  const kubectl = findKubectl()
  if (!kubectl) {
    skip('kubectl')
    return 0
  }
  const python = await judgePython().catch((error: unknown) => {
    if (!(error instanceof Skipped)) throw error
    skip('Python with pip')
  })
  const go = (await findGo()) ? await ensureOracle(['go-client', 'sandboxd']) : undefined
  if (!go) skip('Go')
  await using platform = await startPlatformProcess({ args: ['--agent', 'command', '--warm', '0'] })
  const bin = join(platform.directory, 'bin')
  mkdirSync(bin)
  symlinkSync(kubectl, join(bin, 'kubectl'))
  const env = { ...process.env, KUBECONFIG: platform.kubeconfig, PATH: `${bin}${delimiter}${process.env.PATH ?? ''}` }
  const run = async (program: string, args: string[]): Promise<number> => {
    const child = spawn(program, args, { stdio: 'inherit', env })
    const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
    if (signal) process.stderr.write(`conformance: ${program} was ended by ${signal}\n`)
    return code ?? 1
  }
  const applied = await run(kubectl, ['apply', '-f', join(import.meta.dirname, 'pools.yaml')])
  if (applied !== 0) return applied
  const codes: number[] = []
  if (python) codes.push(await run(python, [join(import.meta.dirname, 'judge.py')]))
  if (go) codes.push(await run(go['go-client'].path, ['daemon', 'corral']))
  const report = reporter((line) => process.stdout.write(`${line}\n`))
  await judgeWithSdk(platform.kubeconfig, go?.sandboxd.path, report)
  return codes.some((code) => code !== 0) || report.failures() > 0 ? 1 : 0
}

function skip(what: string): undefined {
  process.stderr.write(`conformance: ${what} is not installed; its judges are skipped\n`)
}

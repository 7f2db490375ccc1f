/**
 * Our daemon judged by upstream's own Python clients, synchronous and asynchronous, over both protocols: the legacy runtime
 * on 8888 and sandboxd on 8080 and 9090. `npm run conformance:daemon`; without Python or kubectl one line says what is missing.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, symlinkSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { findKubectl, startPlatformProcess } from '@corral/testing'
import { judgePython } from '../clients/python.js'
import { Skipped } from '../harness/check.js'

process.exitCode = await main()

async function main(): Promise<number> {
  const kubectl = findKubectl()
  const python = await judgePython().catch((error: unknown) => {
    if (error instanceof Skipped) return undefined
    throw error
  })
  if (!kubectl || !python) {
    process.stderr.write(`conformance: ${kubectl ? 'Python with pip' : 'kubectl'} is not installed; skipped\n`)
    return 0
  }
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
  return applied === 0 ? await run(python, [join(import.meta.dirname, 'judge.py')]) : applied
}

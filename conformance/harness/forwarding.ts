import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Context } from './context.js'
import { kubectlPath } from './kubectl.js'

export interface Forwarding {
  readonly port: number
  readonly child: ChildProcess
  errors(): string
  stop(): Promise<void>
}

/** `kubectl port-forward` until stopped; resolves when it listens. */
export async function forward(t: Context, version: string, target: string, port: number): Promise<Forwarding> {
  const args = ['-n', await t.ns(), 'port-forward', target, `:${port}`]
  const child = spawn(kubectlPath(version), args, { env: t.kubectlEnv(), stdio: ['ignore', 'pipe', 'pipe'] })
  const errors: string[] = []
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk.toString()))
  const closed = new Promise<void>((resolve) => {
    child.once('close', () => resolve())
  })
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL')
    await closed
  }
  t.after(stop)
  const timer = setTimeout(() => child.kill('SIGKILL'), 240_000)
  let local = 0
  for await (const line of createInterface({ input: child.stdout })) {
    local = Number(/127\.0\.0\.1:(\d+)/.exec(line)?.[1] ?? 0)
    if (local) break
  }
  clearTimeout(timer)
  child.stdout.resume()
  if (!local) throw new Error(`kubectl ${version} port-forward ${target}: ${errors.join('')}`)
  return { port: local, child, errors: () => errors.join(''), stop }
}

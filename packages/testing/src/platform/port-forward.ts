import { spawn } from 'node:child_process'
import { findKubectl } from './platform-process.js'
import { hangMs } from './wait-until.js'

export interface PortForward extends AsyncDisposable {
  readonly url: string
}

/** A `kubectl port-forward` to a port of a pod or of `service/NAME`, on any free local port. */
export async function portForward(
  kubeconfig: string,
  target: string,
  port: number,
  namespace = 'default',
): Promise<PortForward> {
  const kubectl = findKubectl()
  if (!kubectl) throw new Error('kubectl is not installed')
  const where = target.includes('/') ? target : `pod/${target}`
  const child = spawn(kubectl, ['--kubeconfig', kubeconfig, '-n', namespace, 'port-forward', where, `:${port}`], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  let output = ''
  const local = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`kubectl did not forward within ${hangMs} ms: ${output}`)), hangMs)
    const look = (text: string): void => {
      output += text
      const found = /Forwarding from 127\.0\.0\.1:(\d+)/.exec(output)?.[1]
      if (!found) return
      clearTimeout(timer)
      resolve(found)
    }
    child.stdout.setEncoding('utf8').on('data', look)
    child.stderr.setEncoding('utf8').on('data', look)
    void ended.then(() => {
      clearTimeout(timer)
      reject(new Error(`kubectl ended: ${output}`))
    })
  })
  return {
    url: `http://127.0.0.1:${local}`,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await ended
    },
  }
}

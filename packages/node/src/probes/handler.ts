import { anySignal } from '@corral/protocol'
import type { Container, ExecAction, HTTPGetAction, TCPSocketAction } from '@corral/resources'
import type { Cell } from '../isolation/isolation.js'
import { httpStatus } from './http-get.js'

/** What a probe or a lifecycle hook does, in the part both share. */
export interface Handler {
  exec?: ExecAction
  httpGet?: HTTPGetAction
  tcpSocket?: TCPSocketAction
}

export interface HandlerResult {
  ok: boolean
  message: string
}

export interface HandlerContext {
  cell: Cell
  container: Container
  podIP: string
  timeoutMs: number
  signal: AbortSignal
}

const keptOutputBytes = 2048

/** Carries out one handler inside the pod. Never throws: whatever goes wrong is a failed result with its message. */
export async function runHandler(handler: Handler, context: HandlerContext): Promise<HandlerResult> {
  const timeout = AbortSignal.timeout(context.timeoutMs)
  const signal = anySignal([timeout, context.signal])
  try {
    return await within(signal, perform(handler, { ...context, signal }))
  } catch (error) {
    const message = timeout.aborted ? `timed out after ${context.timeoutMs / 1000}s` : messageOf(error)
    return { ok: false, message: describe(handler, context, message) }
  }
}

async function perform(handler: Handler, context: HandlerContext): Promise<HandlerResult> {
  if (handler.exec) return execHandler(handler.exec, context)
  if (handler.httpGet) return httpHandler(handler.httpGet, context)
  if (handler.tcpSocket) {
    const connection = await dial(handler.tcpSocket, context)
    connection.destroy()
    return { ok: true, message: '' }
  }
  return { ok: false, message: 'no handler this node can carry out' }
}

async function execHandler(action: ExecAction, { cell, signal }: HandlerContext): Promise<HandlerResult> {
  const command = action.command ?? []
  const child = await cell.exec({ command, stdin: false, stdout: true, stderr: true, tty: false, signal })
  const onAbort = (): void => child.kill()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    const [stdout, stderr, exit] = await Promise.all([head(child.stdout), head(child.stderr), child.exited])
    return { ok: exit.exitCode === 0, message: `${stdout}${stderr}`.trim() || `exit code ${exit.exitCode}` }
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

async function httpHandler(action: HTTPGetAction, context: HandlerContext): Promise<HandlerResult> {
  const isTls = action.scheme === 'HTTPS'
  const connection = await dial(action, context)
  const onAbort = (): void => connection.destroy()
  context.signal.addEventListener('abort', onAbort, { once: true })
  try {
    const host = `${action.host ?? context.podIP}:${portNumber(action.port, context.container)}`
    const status = await httpStatus(connection, {
      path: action.path ?? '/',
      host,
      headers: action.httpHeaders ?? [],
      isTls,
    })
    return { ok: status >= 200 && status < 400, message: `HTTP probe failed with statuscode: ${status}` }
  } finally {
    context.signal.removeEventListener('abort', onAbort)
  }
}

function dial(action: { port: number | string; host?: string }, context: HandlerContext): ReturnType<Cell['dial']> {
  const port = portNumber(action.port, context.container)
  return context.cell.dial(port, { signal: context.signal, ...(action.host ? { host: action.host } : {}) })
}

/** A port given by number or by the name of one of the container's ports. */
export function portNumber(port: number | string, container: Container): number {
  const named = container.ports?.find((entry) => entry.name === port)?.containerPort
  const number = named ?? Number(port)
  if (Number.isInteger(number) && number > 0 && number < 65_536) return number
  throw new RangeError(`couldn't find port: ${port}`)
}

async function head(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  let text = ''
  for await (const chunk of chunks) {
    if (text.length < keptOutputBytes) text += Buffer.from(chunk).toString('utf8')
  }
  return text.slice(0, keptOutputBytes)
}

function within<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

function describe(handler: Handler, { podIP, container }: HandlerContext, message: string): string {
  const action = handler.httpGet ?? handler.tcpSocket
  if (!action) return message
  const isHttp = handler.httpGet !== undefined
  const scheme = handler.httpGet?.scheme === 'HTTPS' ? 'https' : 'http'
  const port = container.ports?.find((entry) => entry.name === action.port)?.containerPort ?? action.port
  const target = isHttp
    ? `Get "${scheme}://${podIP}:${port}${handler.httpGet?.path ?? '/'}"`
    : `dial tcp ${podIP}:${port}`
  return `${target}: ${message}`
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

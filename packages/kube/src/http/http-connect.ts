import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { KubeError } from '@corral/resources'
import type { Tunnelled, TunnelOptions } from './proxy-tunnel.js'

/** Asks an HTTP proxy for a connection, by CONNECT. Rejects with `ConnectionLost` or `Timeout`. */
export function httpConnect({ proxy, host, port, timeoutMs }: TunnelOptions, signal: AbortSignal): Promise<Tunnelled> {
  const target = `${host.includes(':') ? `[${host}]` : host}:${port}`
  const name = `the proxy ${proxy.host}`
  return new Promise((resolve, reject) => {
    const send = proxy.protocol === 'https:' ? requestHttps : requestHttp
    const request = send({
      host: proxy.hostname.replace(/^\[|\]$/g, ''),
      port: Number(proxy.port) || (proxy.protocol === 'https:' ? 443 : 80),
      method: 'CONNECT',
      path: target,
      agent: false,
      headers: { host: target, ...authorization(proxy) },
      timeout: timeoutMs,
      signal,
    })
    const refused = (status: number | undefined): void =>
      reject(new KubeError('ConnectionLost', `${name} answers ${status} to a connection to ${target}`))
    request.once('timeout', () => {
      reject(new KubeError('Timeout', `${name}: no answer in ${timeoutMs} ms`))
      request.destroy()
    })
    request.on('error', (cause) => reject(new KubeError('ConnectionLost', `${name}: ${cause.message}`, { cause })))
    request.once('connect', ({ statusCode }, socket, head) => {
      if (statusCode === 200) return resolve({ socket, head })
      socket.destroy()
      refused(statusCode)
    })
    // An answer to CONNECT that is no tunnel comes as an ordinary response where the proxy closes after it.
    request.once('response', ({ statusCode }) => {
      refused(statusCode)
      request.destroy()
    })
    request.end()
  })
}

function authorization({ username, password }: URL): { 'proxy-authorization'?: string } {
  if (username === '') return {}
  const text = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(text).toString('base64')}` }
}

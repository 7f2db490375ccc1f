import type { Socket } from 'node:net'
import type { buildConnector } from 'undici'
import type { ClusterAccess } from '../cluster-access.js'
import { ProxyTunnel } from './proxy-tunnel.js'

/** Opens connections through the proxy: TLS is spoken with the server, inside the tunnel. */
export function proxyConnector(
  undici: typeof import('undici')['default'],
  { proxy, server }: ClusterAccess,
  tls: buildConnector.BuildOptions,
): buildConnector.connector {
  const connect = undici.buildConnector(tls)
  const [host, port] = [server.hostname.replace(/^\[|\]$/g, ''), Number(server.port) || 443]
  return (options, callback) => {
    const tunnel = new ProxyTunnel({ proxy: proxy!, host, port, timeoutMs: tls.timeout ?? 10_000 })
    let isDone = false
    const once: typeof callback = (...result) => {
      if (!isDone) callback(...result)
      isDone = true
    }
    tunnel.once('error', (error) => once(error, null))
    // TLS runs over any duplex stream; undici's types name the sockets it opens itself.
    connect({ ...options, httpSocket: tunnel as unknown as Socket }, once)
  }
}

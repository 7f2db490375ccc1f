import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Status } from '@corral/resources'

/** As `refuseWith`, for a refusal that is told in a few words. */
export function refuseUpgrade(socket: Duplex, code: number, reason: string, message: string): void {
  refuseWith(socket, { apiVersion: 'v1', kind: 'Status', metadata: {}, status: 'Failure', message, reason, code })
}

/**
 * Answers an upgrade request with an ordinary HTTP response and closes the socket. Safe on a socket that is already
 * gone. Kubernetes clients show the Status' message to their user, and wait as long as it says.
 */
export function refuseWith(socket: Duplex, status: Status): void {
  const { code = 500, details } = status
  const body = Buffer.from(JSON.stringify(status))
  const lines = [`HTTP/1.1 ${code} ${STATUS_CODES[code] ?? 'Error'}`]
  if (details?.retryAfterSeconds !== undefined) lines.push(`Retry-After: ${details.retryAfterSeconds}`)
  lines.push('Content-Type: application/json', `Content-Length: ${body.length}`, 'Connection: close', '', '')
  // Errors of a socket that is being closed are ignored.
  socket.on('error', () => {})
  if (!socket.writable) return void socket.destroy()
  socket.end(Buffer.concat([Buffer.from(lines.join('\r\n')), body]), () => socket.destroy())
}

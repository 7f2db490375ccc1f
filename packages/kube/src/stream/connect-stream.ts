import type { ApiConnection } from '@corral/ports'
import { KubeError } from '@corral/resources'
import type { ClusterAccess, Credentials } from '../cluster-access.js'
import type { TransportRequest } from '../kube-transport.js'
import { channelPort, portProtocols } from './channel-port.js'
import { channelProcess } from './channel-process.js'
import type { StreamConnections } from './stream-connections.js'
import { openWebSocket } from './web-socket.js'

const processProtocols = ['v5.channel.k8s.io', 'v4.channel.k8s.io']

/** Opens one port where the query names one, else the process behind exec or attach. */
export async function connectStream(
  access: ClusterAccess,
  credentials: Credentials,
  connections: StreamConnections,
  request: TransportRequest,
  userAgent: string,
): Promise<ApiConnection> {
  const isPort = request.query?.has('ports') === true
  const protocols = isPort ? portProtocols : processProtocols
  const connect = () => connections.take(credentials)
  const socket = await openWebSocket(access, credentials, connect, request, protocols, userAgent)
  if (!protocols.includes(socket.protocol)) {
    socket.terminate()
    throw new KubeError('BadRequest', `connect ${request.path}: the server chose no protocol we know`)
  }
  if (!isPort) return { type: 'process', process: channelProcess(socket, request.signal) }
  const port = Number(request.query?.get('ports'))
  return { type: 'port', stream: channelPort(socket, port, request.signal) }
}

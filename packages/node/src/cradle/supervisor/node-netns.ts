import { spawnSync } from 'node:child_process'
import { createSocket, type Socket as DatagramSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'

/**
 * What `native/netns.c` does, for machines without a compiler: started by unshare or nsenter inside the namespace, it
 * sets up loopback and routes with ip(8), passes its listeners to the parent, says "ready" and waits for end of file.
 */
export async function prepareNamespace(args: readonly string[]): Promise<void> {
  const values = (name: string): string[] => args.filter((_, index) => args[index - 1] === name)
  const lines = ['link set lo up', ...values('--route').map((route) => `route replace local ${route} dev lo`)]
  const run = spawnSync('ip', ['-batch', '-'], { input: `${lines.join('\n')}\n`, encoding: 'utf8' })
  if (run.status !== 0) {
    process.stderr.write(`netns: ${run.error?.message ?? run.stderr}\n`)
    process.exit(125)
  }
  try {
    writeFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', '0')
  } catch {
    // Ports below 1024 stay privileged inside: inconvenient, not unsafe.
  }
  for (const place of values('--tcp')) await handOver(await listenTcp(place))
  for (const place of values('--udp')) await handOver(await bindUdp(place))
  process.stdout.write('ready\n')
  process.stdin.resume()
  await once(process.stdin, 'end')
  process.exit(0)
}

async function listenTcp(place: string): Promise<Server> {
  const server = createServer()
  server.listen(splitPlace(place))
  await once(server, 'listening')
  return server
}

async function bindUdp(place: string): Promise<DatagramSocket> {
  const socket = createSocket('udp4')
  const { host, port } = splitPlace(place)
  socket.bind(port, host)
  await once(socket, 'listening')
  return socket
}

function handOver(handle: Server | DatagramSocket): Promise<void> {
  return new Promise((resolve, reject) => {
    process.send?.({ key: 'listener' }, handle, {}, (error) => (error ? reject(error) : resolve()))
  })
}

function splitPlace(place: string): { host: string; port: number } {
  const address = place.slice(place.indexOf('=') + 1)
  const colon = address.lastIndexOf(':')
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) }
}

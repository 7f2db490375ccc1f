import { existsSync } from 'node:fs'
import { bubblewrapIsolation } from '@corral/node'
import { describe, expect, it } from 'vitest'
import { hasBubblewrap } from '../../packages/node/src/isolation/workbench.test-suite.js'
import { isReady, nodeUnderTest } from '../node/node-under-test.js'

const canRun = hasBubblewrap && process.getuid?.() === 0 && existsSync('/usr/bin/python3')
const guardMs = 240_000

/**
 * Sends to sockets of its own that are never read, until `goal` MiB are on their way or ten sockets in a row took next to
 * nothing. Prints how many MiB the kernel holds for it.
 */
const fill = `
import socket, sys
kind, goal, held, kept, poor = sys.argv[1], int(sys.argv[2]) << 20, 0, [], 0
def pair():
    if kind == "udp":
        end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        end.bind(("127.0.0.1", 0)); near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); near.connect(end.getsockname())
    else:
        door = socket.create_server(("127.0.0.1", 0)); near = socket.create_connection(door.getsockname()); end, _ = door.accept()
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    near.setblocking(False); end.setblocking(False); kept.extend([near, end]); return near, end
def offer(near):
    for _ in range(256):
        try: yield near.send(b"x" * 32768)
        except BlockingIOError: return
def drain(end):
    while True:
        try: yield len(end.recv(32768))
        except BlockingIOError: return
sockets = []
while sum(size for _, size in sockets) < goal and poor < 10:
    near, end = pair(); sent = sum(offer(near)); sockets.append((end, sent)); poor = poor + 1 if sent < 300_000 else 0
print(sum(sum(drain(end)) for end, _ in sockets) >> 20)`

const pod = {
  containers: [
    {
      name: 'main',
      image: 'busybox',
      command: ['sleep', '600'],
      resources: { limits: { memory: '256Mi' } },
    },
  ],
}

describe.skipIf(!canRun)('bytes in sockets that are never read (bubblewrap, root, Python)', () => {
  it.each(['tcp', 'udp'])(
    'over %s count to what a pod may have: not to the memory for sockets that all of the machine shares',
    async (kind) => {
      await using node = await nodeUnderTest((dataDir) => bubblewrapIsolation({ dataDir }))
      await node.create('hoarder', pod)
      await node.until('hoarder', isReady)
      const held = async (goalMib: number): Promise<number> => {
        const { stdout } = await node.run('hoarder', ['/usr/bin/python3', '-c', fill, kind, String(goalMib)])
        return Number(stdout)
      }
      expect(await held(8)).toBeGreaterThanOrEqual(4)
      expect(await held(600)).toBeLessThan(300)
    },
    guardMs,
  )
})

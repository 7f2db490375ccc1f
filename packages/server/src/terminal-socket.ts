import { type TerminalFrame, terminalRequestSchema } from '@corral/protocol'
import type { TaskTerminal, TaskTerminals } from '@corral/tasks'
import type { WebSocket } from 'ws'
import { httpError } from './http-error.js'
import { hasRoom, room } from './socket-room.js'
import type { SocketHandler } from './socket-upgrades.js'

/** How much input is buffered while the sandbox reads none. */
const maxTypedAhead = 1024 * 1024

/** A shell in the sandbox of a task. Its own socket: a flood of output, or a shell that fails, harms nothing else. */
export function terminalSocket(terminals: TaskTerminals): SocketHandler {
  return async (socket, { params, query, signal }) => {
    const session = query.get('session') ?? 'main'
    const from = whole(query.get('from'), 0, Number.MAX_SAFE_INTEGER)
    const size = { columns: whole(query.get('columns'), 80, 1000), rows: whole(query.get('rows'), 24, 1000) }
    if (!/^[A-Za-z0-9-]{1,64}$/.test(session)) return socket.close(1008, 'not the name of a session')
    const typed: { data: Buffer; isBinary: boolean }[] = []
    const early = (data: Buffer, isBinary: boolean): void => void typed.push({ data, isBinary })
    socket.on('message', early)
    let terminal: TaskTerminal
    try {
      terminal = await terminals.open(params[0] ?? '', { session, from, size, signal })
    } catch (error) {
      if (!signal.aborted) send(socket, { type: 'error', error: httpError(error).body.error })
      return
    }
    socket.off('message', early)
    const take = inputOf(socket, terminal)
    for (const { data, isBinary } of typed) take(data, isBinary)
    socket.on('message', take)
    try {
      send(socket, { type: 'ready', session, offset: from })
      await copyOutput(socket, terminal)
    } catch (error) {
      if (!signal.aborted) send(socket, { type: 'error', error: httpError(error).body.error })
    } finally {
      await terminal.close()
    }
  }
}

async function copyOutput(socket: WebSocket, { output }: TaskTerminal): Promise<void> {
  for await (const event of output) {
    if (event.type === 'exit') send(socket, { type: 'exit', code: event.exit.exit_code })
    else if (event.type === 'gap') send(socket, { type: 'gap', bytes: event.bytes })
    else if (socket.readyState === socket.OPEN) socket.send(event.data, { binary: true })
    if (!hasRoom(socket)) await room(socket)
  }
}

/** Hands on what was typed, in order, one call after the other. */
function inputOf(socket: WebSocket, terminal: TaskTerminal): (data: Buffer, isBinary: boolean) => void {
  let last = Promise.resolve()
  let ahead = 0
  return (data, isBinary) => {
    ahead += data.length
    if (ahead > maxTypedAhead) return socket.close(1009, 'the sandbox does not read what is typed')
    const call = async (): Promise<void> => {
      if (isBinary) return terminal.write(new Uint8Array(data))
      const { columns, rows } = terminalRequestSchema.parse(JSON.parse(data.toString()))
      await terminal.resize({ columns, rows })
    }
    last = last
      .then(call)
      .catch(() => undefined) // a shell that has ended says so in its output
      .finally(() => {
        ahead -= data.length
      })
  }
}

function whole(text: string | null, without: number, most: number): number {
  const value = Number(text ?? Number.NaN)
  return Number.isInteger(value) && value >= 0 && value <= most ? value : without
}

function send(socket: WebSocket, frame: TerminalFrame): void {
  if (socket.readyState === socket.OPEN) socket.send(JSON.stringify(frame))
}

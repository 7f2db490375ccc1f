import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { buildMcpServer } from './mcp-server.js'
import { type McpBackend, McpSession } from './session.js'

/**
 * Serves one client over standard input and output, until the input ends or `signal` fires, and then deletes the sandboxes
 * of the session. Nothing else may write to standard output meanwhile.
 */
export async function serveMcpStdio(backend: McpBackend, signal: AbortSignal): Promise<void> {
  const session = new McpSession(backend)
  const handle = serveStdio(() => buildMcpServer(session))
  await new Promise<void>((resolve) => {
    process.stdin.once('end', resolve)
    process.stdin.once('close', resolve)
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
  await handle.close()
  await session.close()
}

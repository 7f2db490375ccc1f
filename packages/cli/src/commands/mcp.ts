import { randomBytes } from 'node:crypto'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import { findPlatform } from '../client/find-platform.js'
import { tasksClient } from '../client/tasks.js'
import { version } from '../version.js'
import { dataDirOption, examples } from './common.js'

interface McpOptions {
  dataDir?: string
  kubeconfig?: string
  context?: string
  namespace?: string
  http?: number
  host: string
}

/** `corral mcp`: sandboxes and tasks as tools for an agent on this desktop. */
export function addMcpCommand(program: Command): void {
  dataDirOption(program.command('mcp'))
    .summary('sandboxes and tasks as tools of the Model Context Protocol')
    .description(
      `Lets an agent on this machine make sandboxes, run commands and files in them, and start tasks: over standard input and
output, or with --http over streamable HTTP. A client sees the sandboxes of its own session only; they are deleted when the
session ends. Tools for tasks are there while a platform runs.`,
    )
    .option('--http <port>', 'serve streamable HTTP on this port; 0 takes a free one', toPort)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--kubeconfig <file>', 'another cluster (default: the running platform, else what kubectl would use)')
    .option('--context <name>', 'context of that kubeconfig')
    .option('-n, --namespace <name>', 'namespace')
    .addHelpText(
      'after',
      `${examples('corral mcp', 'corral mcp --http 7090')}
A client starts the first by itself: give it the command corral mcp.
With --http every request needs a bearer token: CORRAL_MCP_TOKEN, or one that is made up and printed.
`,
    )
    .action(async (options: McpOptions) => {
      const { serveMcpHttp, serveMcpStdio } = await import('@corral/mcp')
      const { sandboxClient } = await import('../client/kube-access.js')
      const platform = options.kubeconfig ? undefined : await findPlatform(options)
      await using sandboxes = await sandboxClient(options)
      const backend = { sandboxes, tasks: platform ? tasksClient(platform) : undefined, version }
      const stop = new AbortController()
      for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort())
      // Awaited: the client is closed at the end of this block.
      if (options.http === undefined) return await serveMcpStdio(backend, stop.signal)

      // Empty is not set: no request could carry it.
      const given = process.env.CORRAL_MCP_TOKEN || undefined
      const token = given ?? randomBytes(24).toString('base64url')
      const server = await serveMcpHttp({ backend, token, host: options.host, port: options.http })
      process.stdout.write(`MCP at ${server.url}\n`)
      if (given === undefined) process.stdout.write(`token ${token}\n`)
      await new Promise<void>((resolve) => stop.signal.addEventListener('abort', () => resolve(), { once: true }))
      await server.close()
    })
}

function toPort(text: string): number {
  const port = Number(text)
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port
  throw new CliError(`--http takes a port between 0 and 65535, not ${text}`, { exitCode: 2 })
}

import type { CreateTaskRequest } from '@corral/protocol'
import { CliError } from '../cli-error.js'

type McpServers = NonNullable<CreateTaskRequest['mcp_servers']>

/** The servers that `--mcp` stands for: `docs=https://mcp.example.com/x`, or a command line inside the sandbox. */
export function mcpServersFrom(texts: readonly string[]): McpServers {
  return texts.map((text) => {
    const [, name, what] = /^([^=\s]+)=(.+)$/s.exec(text) ?? []
    if (name === undefined || what === undefined)
      throw new CliError(`--mcp: "${text}" is not NAME=COMMAND or NAME=URL`, {
        exitCode: 2,
        hint: "For example --mcp 'house=node tools/mcp.mjs' or --mcp docs=https://mcp.example.com/docs.",
      })
    if (/^https?:\/\//.test(what)) return { name, url: what }
    return { name, command: '/bin/sh', args: ['-c', what] }
  })
}

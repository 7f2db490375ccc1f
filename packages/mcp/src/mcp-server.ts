import { McpServer } from '@modelcontextprotocol/server'
import { addSandboxTools } from './sandbox-tools.js'
import type { McpSession } from './session.js'
import { addTaskTools } from './task-tools.js'

/** The server one client talks to. */
export function buildMcpServer(session: McpSession): McpServer {
  const { tasks, version } = session.backend
  const server = new McpServer({ name: 'corral', version }, { capabilities: { tools: {} } })
  addSandboxTools(server, session)
  if (tasks) addTaskTools(server, tasks)
  return server
}

/** As small a server as the Model Context Protocol allows, as a file for a repository. Its one tool answers DING-DONG. */
export const mcpServerSource = String.raw`
import { createInterface } from 'node:readline'
const tools = [{ name: 'ring_the_bell', description: 'Rings', inputSchema: { type: 'object', properties: {} } }]
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  const result =
    method === 'initialize'
      ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'house', version: '1' } }
      : method === 'tools/list'
        ? { tools }
        : method === 'tools/call'
          ? { content: [{ type: 'text', text: 'DING' + '-DONG' }] }
          : {}
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\n')
})
`

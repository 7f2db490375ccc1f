/**
 * A small agent of the Agent Client Protocol, as a file for the repository of a test. In plan mode it answers with a plan of two
 * paragraphs; else it writes what it was told to `told.txt`. "touch" in a prompt makes it write in plan mode as well.
 */
export const acpAgentSource = String.raw`
import { createInterface } from 'node:readline'
import { appendFileSync, writeFileSync } from 'node:fs'

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n')
const say = (text) =>
  send({
    method: 'session/update',
    params: { sessionId: 's', update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } },
  })
let mode = 'code'
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (method === 'initialize') send({ id, result: { protocolVersion: 1, agentCapabilities: {} } })
  if (method === 'session/new') {
    const availableModes = [{ id: 'code', name: 'Code' }, { id: 'plan', name: 'Plan' }]
    send({ id, result: { sessionId: 's', modes: { currentModeId: 'code', availableModes } } })
  }
  if (method === 'session/set_mode') {
    mode = params.modeId
    send({ id, result: {} })
  }
  if (method === 'session/prompt') {
    const { text } = params.prompt[0]
    if (text.includes('touch')) appendFileSync('touched.txt', mode + '\n')
    if (mode === 'plan') {
      say('First look.\n\n')
      say('Then do: ' + text)
    } else {
      writeFileSync('told.txt', text)
      say('Done.')
    }
    send({ id, result: { stopReason: 'end_turn' } })
  }
})
`
export const acpAgent = { name: 'acp', command: 'node agent.mjs' } as const

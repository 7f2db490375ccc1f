/**
 * A small agent of the Agent Client Protocol that asks, as a file for the repository of a test. It writes every prompt of its
 * session to `told.txt`. "ask" in a prompt: it asks for permission and writes what was chosen to `chosen.txt`. "wait" in a prompt:
 * its turn lasts until the file `go` is in the work tree, or ends with it at `die`.
 */
export const askingAgentSource = String.raw`
import { createInterface } from 'node:readline'
import { appendFileSync, existsSync, rmSync, writeFileSync } from 'node:fs'

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n')
const say = (text) =>
  send({
    method: 'session/update',
    params: { sessionId: 's', update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } } },
  })
let asked = 0
let onAnswer
const ask = () =>
  new Promise((resolve) => {
    onAnswer = resolve
    const options = [{ optionId: 'yes', name: 'Allow', kind: 'allow_once' }, { optionId: 'no', name: 'Reject', kind: 'reject_once' }]
    send({ id: 'ask-' + ++asked, method: 'session/request_permission', params: { sessionId: 's', toolCall: { toolCallId: 'c' + asked, title: 'Write chosen.txt' }, options } })
  })
async function turn(id, text) {
  appendFileSync('told.txt', text + '\n')
  say('working')
  while (text.includes('wait') && !existsSync('go')) if (existsSync('die')) process.exit(3)
    else await new Promise((resolve) => setTimeout(resolve, 20))
  rmSync('go', { force: true })
  for (const _ of text.matchAll(/ask/g)) appendFileSync('chosen.txt', (await ask()) + '\n')
  say('Done.')
  send({ id, result: { stopReason: 'end_turn' } })
}
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params, result } = JSON.parse(line)
  if (method === 'initialize') send({ id, result: { protocolVersion: 1, agentCapabilities: {} } })
  if (method === 'session/new') send({ id, result: { sessionId: 's' } })
  if (method === 'session/prompt') turn(id, params.prompt[0].text)
  if (method === undefined && String(id).startsWith('ask-')) onAnswer(result.outcome.optionId ?? result.outcome.outcome)
})
`
export const askingAgent = { name: 'acp', command: 'node agent.mjs' } as const

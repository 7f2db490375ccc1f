import { endAgentSource } from '../../end-agent-source.js'
import { inboxSource } from '../../inbox-source.js'

/**
 * Stands between the daemon and `codex app-server` inside the sandbox: starts or resumes a thread, gives it the prompt and
 * what comes into the inbox, and prints what the thread says as it came, without the pieces of texts that come whole
 * later. Lines of its own carry `corral`. A message counts as read when the thread shows it as an item of its turn; one
 * that came too late for a turn begins the next.
 */
export const codexClientSource: string = `${inboxSource}${endAgentSource('close')}
${String.raw`
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

const options = JSON.parse(readFileSync(process.env.CORRAL_CODEX_OPTIONS, 'utf8'))
const agent = spawn('codex', ['app-server', ...options.args], { stdio: ['pipe', 'pipe', 'inherit'] })
const pending = new Map()
const requests = new Map()
const parts = new Map()
const unread = new Map()
let nextId = 1
let threadId
let turnId
let onTurnEnd

const print = (value) => process.stdout.write(JSON.stringify(value) + '\n')
const send = (message) => agent.stdin.write(JSON.stringify(message) + '\n')
const request = (method, params) =>
  new Promise((resolve, reject) => {
    const id = nextId++
    pending.set(id, { resolve, reject })
    send({ id, method, params })
  })

agent.stdin.on('error', () => undefined)
agent.on('error', (error) => finish(127, String(error.message)))
// The agent gets the same signal; what it still says is passed on before this program goes.
for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(name, () => undefined)
agent.on('close', (code, signal) => {
  if (!signal) return finish(code || 1, 'codex app-server ended with exit code ' + code)
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
})

createInterface({ input: agent.stdout, crlfDelay: Infinity }).on('line', (line) => {
  let message
  try {
    message = JSON.parse(line)
  } catch {
    process.stdout.write(line + '\n')
    return
  }
  if (message.method === undefined) return settle(message)
  // Agents that this one started have threads of their own.
  if (message.params?.threadId !== undefined && message.params.threadId !== threadId) {
    if (message.id !== undefined) decide(message)
    return
  }
  if (!/delta$/i.test(message.method)) process.stdout.write(line + '\n')
  if (message.id !== undefined) return serve(message)
  const { item, turn } = message.params ?? {}
  if (message.method === 'item/completed' && item?.type === 'userMessage') onRead(item.clientId)
  if (message.method === 'turn/completed' && turn?.id === turnId) onTurnEnd?.(turn)
})

function settle({ id, result, error }) {
  const waiting = pending.get(id)
  pending.delete(id)
  if (error) waiting?.reject(new Error(error.message ?? 'error'))
  else waiting?.resolve(result)
}

const accept = { 'item/commandExecution/requestApproval': true, 'item/fileChange/requestApproval': true }
function serve(message) {
  const { id, method } = message
  const isInput = method === 'item/tool/requestUserInput' && message.params?.questions?.length > 0
  if (options.ask === 'never' || !(isInput || (accept[method] && options.ask === 'always'))) return decide(message)
  requests.set(String(id), message)
  print({ corral: 'asks', id: String(id) })
}
// A request that is not shown to the user is allowed: the sandbox is the boundary.
function decide({ id, method, params }) {
  if (accept[method]) return send({ id, result: { decision: 'accept' } })
  if (method === 'item/tool/requestUserInput') return send({ id, result: { answers: {} } })
  if (method === 'mcpServer/elicitation/request') {
    const isFilledIn = (params?.requestedSchema?.required ?? []).length > 0
    return send({ id, result: isFilledIn ? { action: 'decline', content: null } : { action: 'accept', content: {} } })
  }
  send({ id, error: { code: -32601, message: method + ' is not offered' } })
}

function onEntry(entry) {
  if (entry.kind === 'answer') return answer(entry)
  if (entry.kind !== 'message') return
  unread.set(entry.id, entry)
  if (turnId) steer(entry)
}
// Refused where the turn has just ended: the message then begins the next one.
function steer({ id, text }) {
  request('turn/steer', {
    ...{ threadId, expectedTurnId: turnId, clientUserMessageId: id },
    input: [{ type: 'text', text }],
  }).catch(() => undefined)
}
function onRead(id) {
  const entry = unread.get(id)
  if (!entry) return
  unread.delete(id)
  print({ corral: 'read', id, text: entry.text })
}
// Several questions of one call are answered together, once each has its answer.
function answer({ name, request_id, decision, question, of = 1, label }) {
  const asked = requests.get(request_id)
  if (!asked) return
  print({ corral: 'answered', name, text: label })
  if (decision) {
    requests.delete(request_id)
    return send({ id: asked.id, result: { decision } })
  }
  const given = parts.get(request_id) ?? {}
  given[question] = { answers: [label] }
  parts.set(request_id, given)
  if (Object.keys(given).length < of) return
  requests.delete(request_id)
  parts.delete(request_id)
  send({ id: asked.id, result: { answers: given } })
}

async function run(input) {
  const started = await request('turn/start', { threadId, input })
  turnId = started.turn.id
  const ended = new Promise((resolve) => {
    onTurnEnd = resolve
  })
  for (const entry of unread.values()) steer(entry)
  const turn = await ended
  turnId = undefined
  return turn
}

try {
  await request('initialize', { clientInfo: { name: 'corral', title: 'Corral', version: '1' } })
  send({ method: 'initialized' })
  const settings = { cwd: process.cwd(), approvalPolicy: options.approvalPolicy, sandbox: options.sandbox }
  if (options.model) settings.model = options.model
  const { thread } = options.resume
    ? await request('thread/resume', { ...settings, threadId: options.resume, excludeTurns: true })
    : await request('thread/start', settings)
  // An id that is nearly right resumes another thread.
  if (options.resume && thread.id !== options.resume) throw new Error('the session ' + options.resume + ' is not there')
  threadId = thread.id
  print({ corral: 'session', sessionId: threadId })
  openInbox(options.inbox, onEntry)
  let input = [{ type: 'text', text: readFileSync(process.env.CORRAL_PROMPT_FILE, 'utf8') }]
  for (;;) {
    const turn = await run(input)
    takeEntries(options.inbox, onEntry)
    const said = [...unread.values()]
    if (turn.status !== 'completed' || said.length === 0) {
      finish(turn.status === 'completed' ? 0 : 1)
      break
    }
    for (const { id } of said) onRead(id)
    input = said.map(({ text }) => ({ type: 'text', text }))
  }
} catch (error) {
  finish(1, error.message)
}
`}`.trimStart()

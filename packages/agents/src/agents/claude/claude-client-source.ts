import { inboxSource } from '../../inbox-source.js'

/**
 * Stands between the daemon and Claude Code inside the sandbox: gives it the prompt and what comes into the inbox on its
 * standard input, prints every line it writes as it came, and lines of its own that carry `corral`. A message counts as read
 * when Claude Code repeats it, which it does when it takes it up. Its input is closed when a turn has ended and nothing
 * waits; a message that arrives after that is neither read nor reported as read.
 */
export const claudeClientSource: string = `${inboxSource}
${String.raw`
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline'

const ask = process.env.CORRAL_ASK ?? 'never'
const options = ['--input-format', 'stream-json', '--replay-user-messages']
if (ask !== 'never') options.push('--permission-prompt-tool', 'stdio')
const agent = spawn('claude', [...process.argv.slice(2), ...options], { stdio: ['pipe', 'pipe', 'inherit'] })
const unread = new Map()
const parts = new Map()
let isClosed = false
let patience

const print = (value) => process.stdout.write(JSON.stringify(value) + '\n')
const send = (value) => agent.stdin.write(JSON.stringify(value) + '\n')
const say = (content, uuid) => send({ type: 'user', message: { role: 'user', content }, uuid })
const respond = (request_id, response) =>
  send({ type: 'control_response', response: { subtype: 'success', request_id, response } })

agent.stdin.on('error', () => undefined)
agent.on('error', (error) => {
  process.stderr.write(String(error.message) + '\n')
  process.exit(127)
})
// The agent gets the same signal; what it still says is passed on before this program goes.
for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(name, () => undefined)
agent.on('close', (code, signal) => {
  if (!signal) process.exit(code ?? 1)
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
})

function onEntry(entry) {
  if (isClosed) return
  if (entry.kind === 'message') {
    const uuid = randomUUID()
    unread.set(uuid, entry)
    say(entry.text, uuid)
  }
  if (entry.kind === 'answer') answer(entry)
}

// Several questions of one call are answered together, once each has its answer.
function answer({ name, request_id, of = 1, response, question, label, input }) {
  if (response) {
    respond(request_id, response)
    return print({ corral: 'answered', name, text: label })
  }
  const given = parts.get(request_id) ?? {}
  given[question] = label
  parts.set(request_id, given)
  print({ corral: 'answered', name, text: label })
  if (Object.keys(given).length < of) return
  parts.delete(request_id)
  respond(request_id, { behavior: 'allow', updatedInput: { ...input, answers: given } })
}

createInterface({ input: agent.stdout, crlfDelay: Infinity }).on('line', (line) => {
  process.stdout.write(line + '\n')
  if (patience) waitForUnread()
  let message
  try {
    message = JSON.parse(line)
  } catch {
    return
  }
  if (message.type === 'user' && message.isReplay === true) {
    const entry = unread.get(message.uuid)
    if (!entry) return
    unread.delete(message.uuid)
    clearTimeout(patience)
    patience = undefined
    print({ corral: 'read', id: entry.id, text: entry.text })
  }
  if (message.type === 'control_request' && message.request?.subtype === 'can_use_tool') {
    const isQuestion = Array.isArray(message.request.input?.questions)
    if (ask === 'always' || (ask === 'input' && isQuestion)) return print({ corral: 'asks', id: message.request_id })
    respond(message.request_id, { behavior: 'allow', updatedInput: message.request.input ?? {} })
  }
  if (message.type === 'result') onTurnEnd()
})

function onTurnEnd() {
  takeEntries(process.env.CORRAL_INBOX, onEntry)
  if (unread.size === 0) close()
  else waitForUnread()
}
// A message that is never taken up must not keep the task for ever: it becomes a follow-up.
function waitForUnread() {
  clearTimeout(patience)
  patience = setTimeout(close, 60_000)
}
function close() {
  isClosed = true
  agent.stdin.end()
}

say(readFileSync(process.env.CORRAL_PROMPT_FILE, 'utf8'), randomUUID())
openInbox(process.env.CORRAL_INBOX, onEntry)
`}`.trimStart()

import { endAgentSource } from '../../end-agent-source.js'
import { inboxSource } from '../../inbox-source.js'

/**
 * A client of the Agent Client Protocol that runs inside the sandbox, beside the agent, as the task's process. There it
 * outlives a restart of the platform with its conversation intact; over the daemon's streams a restarted platform could
 * not tell which of its answers had been written. It prints every line of the agent as it came, and lines of its own
 * that carry `corral`. Plain JavaScript in a string: it is written into the sandbox as a file and uses Node alone.
 */
export const acpClientSource: string = `${inboxSource}${endAgentSource('exit')}
${String.raw`
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { dirname, isAbsolute } from 'node:path'
import { createInterface } from 'node:readline'

const options = JSON.parse(readFileSync(process.env.CORRAL_ACP_OPTIONS, 'utf8'))
const prompt = readFileSync(process.env.CORRAL_PROMPT_FILE, 'utf8')
const agent = spawn('/bin/sh', ['-c', options.command], { stdio: ['pipe', 'pipe', 'inherit'] })
const pending = new Map()
const asked = new Map()
const forms = new Map()
let nextId = 0
let isReplaying = false

const print = (value) => process.stdout.write(JSON.stringify(value) + '\n')
const send = (message) => agent.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n')
const request = (method, params) =>
  new Promise((resolve, reject) => {
    const id = nextId++
    pending.set(id, { resolve, reject })
    send({ id, method, params })
  })
const messages = []
function onEntry(entry) {
  if (entry.kind === 'message') messages.push(entry)
  if (entry.kind !== 'answer' || !asked.has(entry.id)) return
  const id = asked.get(entry.id)
  if (entry.field !== undefined) return fillIn(entry, id)
  asked.delete(entry.id)
  send({ id, result: { outcome: entry.optionId ? { outcome: 'selected', optionId: entry.optionId } : { outcome: 'cancelled' } } })
  print({ corral: 'answered', name: entry.name, text: entry.label })
}

// A form is sent when each of its fields has its answer.
function fillIn({ id: key, name, label, field, value, of = 1 }, id) {
  const content = { ...forms.get(key), [field]: value }
  forms.set(key, content)
  print({ corral: 'answered', name, text: label })
  if (Object.keys(content).length < of) return
  asked.delete(key)
  forms.delete(key)
  send({ id, result: { action: 'accept', content } })
}

agent.stdin.on('error', () => undefined)
agent.on('error', (error) => finish(127, String(error.message)))
agent.on('exit', (code, signal) => finish(code === 0 ? 1 : (code ?? 1), 'the agent ended before its answer (' + (signal ?? 'exit code ' + code) + ')'))

createInterface({ input: agent.stdout, crlfDelay: Infinity }).on('line', (line) => {
  let message
  try {
    message = JSON.parse(line)
  } catch {
    process.stdout.write(line + '\n')
    return
  }
  // What is told again when a session is loaded belongs to the task before.
  if (!(isReplaying && message.method === 'session/update')) process.stdout.write(line + '\n')
  if (message.method !== undefined && message.id !== undefined) return serve(message)
  if (message.id === undefined) return
  const waiting = pending.get(message.id)
  pending.delete(message.id)
  if (message.error) waiting?.reject(Object.assign(new Error(message.error.message ?? 'error'), { data: message.error }))
  else waiting?.resolve(message.result)
})

function serve({ id, method, params }) {
  try {
    if (method === 'session/request_permission') {
      if (options.ask === 'always') {
        asked.set(String(id), id)
        return print({ corral: 'asks', id: String(id) })
      }
      // What a plan would have to be allowed is what the plan is about.
      const wanted = options.mode === 'plan' ? ['reject_once', 'reject_always'] : ['allow_always', 'allow_once']
      const choice = wanted.map((kind) => params.options.find((option) => option.kind === kind)).find(Boolean)
      return send({ id, result: { outcome: choice ? { outcome: 'selected', optionId: choice.optionId } : { outcome: 'cancelled' } } })
    }
    if (method === 'elicitation/create') {
      if (options.ask === 'never' || params.mode !== 'form') return send({ id, result: { action: 'decline' } })
      const isEmpty = Object.keys(params.requestedSchema?.properties ?? {}).length === 0
      if (isEmpty) return send({ id, result: { action: 'accept', content: {} } })
      asked.set(String(id), id)
      return print({ corral: 'asks', id: String(id) })
    }
    if (method === 'fs/read_text_file') {
      const lines = readFileSync(absolute(params.path), 'utf8').split('\n')
      const from = Math.max(0, (params.line ?? 1) - 1)
      return send({ id, result: { content: lines.slice(from, params.limit ? from + params.limit : undefined).join('\n') } })
    }
    if (method === 'fs/write_text_file') {
      if (options.mode === 'plan') throw new Error('nothing is written while a plan is made')
      mkdirSync(dirname(absolute(params.path)), { recursive: true })
      writeFileSync(params.path, params.content)
      return send({ id, result: null })
    }
    send({ id, error: { code: -32601, message: method + ' is not offered' } })
  } catch (error) {
    send({ id, error: { code: -32000, message: String(error.message) } })
  }
}

function absolute(path) {
  if (!isAbsolute(path)) throw new Error(path + ' is not an absolute path')
  return path
}

// Agents offer their modes as such, or as one of their options.
async function enterPlanMode({ sessionId, modes, configOptions = [] }) {
  const option = configOptions.find(({ category, id }) => category === 'mode' || id === 'mode')
  const names = (modes?.availableModes ?? []).map(({ id }) => id)
  const values = (option?.options ?? []).map(({ value }) => value)
  if (names.includes('plan')) return request('session/set_mode', { sessionId, modeId: 'plan' })
  if (values.includes('plan'))
    return request('session/set_config_option', { sessionId, configId: option.id, value: 'plan' })
  throw new Error('this agent has no plan mode (its modes: ' + ([...names, ...values].join(', ') || 'none') + ')')
}

try {
  const { agentCapabilities = {} } = await request('initialize', {
    protocolVersion: 1,
    clientCapabilities: {
      ...{ fs: { readTextFile: true, writeTextFile: true }, terminal: false },
      ...(options.ask === 'never' ? {} : { elicitation: { form: {} } }),
    },
    clientInfo: { name: 'corral', version: '1' },
  })
  const place = { cwd: process.cwd(), mcpServers: options.mcpServers }
  let session
  if (options.resume) {
    if (!agentCapabilities.loadSession) throw new Error('this agent cannot go on with an earlier session')
    isReplaying = true
    const loaded = await request('session/load', { ...place, sessionId: options.resume })
    isReplaying = false
    session = { ...loaded, sessionId: options.resume }
    print({ corral: 'session', sessionId: options.resume })
  } else session = await request('session/new', place)
  if (options.mode === 'plan') await enterPlanMode(session)
  openInbox(options.inbox, onEntry)
  let text = options.instructions ? options.instructions + '\n\n' + prompt : prompt
  for (;;) {
    const { stopReason } = await request('session/prompt', { sessionId: session.sessionId, prompt: [{ type: 'text', text }] })
    // The protocol has one turn at a time: what was said during this one begins the next.
    takeEntries(options.inbox, onEntry)
    const said = messages.splice(0)
    if (stopReason !== 'end_turn' || said.length === 0) {
      finish(stopReason === 'end_turn' ? 0 : 1)
      break
    }
    for (const { id, text } of said) print({ corral: 'read', id, text })
    text = said.map((message) => message.text).join('\n\n')
  }
} catch (error) {
  const details = error.data?.data?.details ?? error.data?.data?.message
  finish(1, error.message + (details ? ': ' + details : ''))
}
`}`.trimStart()

/**
 * How a program beside an agent ends: it says how, closes the agent's input and waits for the agent, which is killed where that
 * does not end it. `event` is the one of the agent's process that was listened to until then. Plain JavaScript in a string,
 * for the programs that go into sandboxes; it uses their `agent` and `print`.
 */
export const endAgentSource = (event: 'exit' | 'close'): string => `
let isFinished = false
function finish(code, message) {
  if (isFinished) return
  isFinished = true
  print({ corral: 'end', code, ...(message ? { message } : {}) })
  agent.stdin.end()
  const end = () => process.exit(code)
  if (agent.exitCode !== null || agent.signalCode !== null || agent.pid === undefined) return end()
  agent.removeAllListeners('${event}')
  agent.once('${event}', end)
  setTimeout(() => agent.kill('SIGTERM'), 2_000).unref()
  setTimeout(() => agent.kill('SIGKILL'), 7_000)
}
`

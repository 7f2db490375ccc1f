import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hangMs, processesOf, waitUntil } from '@corral/testing'
import type { Person } from './person.js'
import { type StandIn, standIns, variables } from './stand-ins.js'

export interface Pasted {
  readonly where: string
  /** As it is printed. */
  readonly text: string
  /** As it was typed, after the row of the table that applied. */
  readonly typed: string
  readonly standIn: StandIn | undefined
  readonly code: number
  readonly output: string
}

export interface Workplace {
  readonly person: Person
  readonly directory: string
  /** Whether the directory is a clone of its own, in which packages may be installed and built. */
  readonly isClone: boolean
}

export interface Statement {
  readonly where: string
  readonly text: string
  /** Typed as it is, because the test itself wrote it. */
  readonly isOwn?: boolean
}

/** The functions that a stand-in may use: another terminal, and what `corral up` prints. */
const prelude = `
set +e
${variables}
# Starts a command as in another terminal and ends it when it says that it is ready.
another_terminal() {
  local log; log=$(mktemp)
  CORRAL_DATA_DIR="$HOME/another data" setsid "$@" > "$log" 2>&1 < /dev/null &
  local pid=$!
  until grep -q 'corral is up' "$log"; do
    kill -0 "$pid" 2> /dev/null || break
    sleep 0.1
  done
  kill -TERM -- "-$pid" 2> /dev/null
  wait "$pid"; local code=$?
  # What it started may take a moment longer.
  while kill -0 -- "-$pid" 2> /dev/null; do sleep 0.1; done
  cat "$log"
  grep -q 'corral is up' "$log" || return 1
  # npm reports the signal that it passed on.
  if [ "$code" = 143 ] && [ "$1" = npm ]; then return 0; fi
  return "$code"
}
# Starts a command as in another terminal and leaves it there.
terminal_two() {
  local log; log=$(mktemp)
  "$@" > "$log" 2>&1 < /dev/null &
  local pid=$!
  until grep -q 'corral is up' "$log"; do
    kill -0 "$pid" 2> /dev/null || { cat "$log"; return 1; }
    sleep 0.1
  done
  disown "$pid"
}
# Tasks that have ended, well or not; their id is in ID.
finished_task() {
  ID=$(corral task create "Begin" --command 'sh fix.sh' --json | sed -n 's/.*"id": *"\\([^"]*\\)".*/\\1/p')
  corral task watch "$ID" > /dev/null
}
failed_task() {
  ID=$(corral task create "Begin" --command 'exit 3' --json "$@" | sed -n 's/.*"id": *"\\([^"]*\\)".*/\\1/p')
  corral task watch "$ID" > /dev/null; [ $? = 1 ]
}
# The address and the token, as the platform printed them, for pages that do not ask for them.
printed_address() {
  local ready="\${CORRAL_DATA_DIR:-$HOME/.corral}/ready.json"
  URL=$(node -p 'JSON.parse(fs.readFileSync(process.argv[1])).url' "$ready")
  TOKEN=$(node -p 'JSON.parse(fs.readFileSync(process.argv[1])).token' "$ready")
}
`

/**
 * Pastes statements one after the other into one bash, as a person would, and answers how each ended. A statement that
 * never ends ends the session. What the statements leave in the background goes on: see `endBackground`.
 */
export async function paste(statements: readonly Statement[], workplace: Workplace): Promise<Pasted[]> {
  const plans = statements.map((statement) => ({ ...statement, ...typedFor(statement, workplace) }))
  const script = [
    prelude,
    ...plans.flatMap(({ typed }, index) => [
      `printf '\\n@@ statement %s\\n' ${index}`,
      ...(typed.includes('$URL') ? ['[ -n "$URL" ] || printed_address'] : []),
      typed,
      `printf '\\n@@ code %s\\n' "$?"`,
    ]),
  ].join('\n')
  const output = await session(`${script}\n`, workplace)
  const parts = output.split(/\n@@ statement (\d+)\n/)
  return plans.map(({ where, text, typed, standIn }, index) => {
    const place = parts.indexOf(String(index))
    const [said = '', code] = (place < 0 ? '' : (parts[place + 1] ?? '')).split(/\n@@ code (\d+)\n/)
    return { where, text, typed, standIn, code: place < 0 || code === undefined ? -1 : Number(code), output: said }
  })
}

/** The statements that did not do what is printed beside them. Those after the first may only follow from it. */
export function failuresOf(pasted: readonly Pasted[]): string[] {
  return pasted.flatMap((each) => failureOf(each) ?? [])
}

/** What a person reads next to a command is part of it: a status of HTTP after `#` is the one that is expected. */
function failureOf({ where, text, typed, code, output }: Pasted): string | undefined {
  const statuses = [...output.matchAll(/\[http (\d+)\]/g)].map(([, status]) => Number(status))
  const expected = /#\s*([1-5]\d\d)\b/.exec(text)?.[1]
  const wrong = statuses.find((status) => (expected ? status !== Number(expected) : status < 200 || status > 299))
  if (code === 0 && (expected === undefined || statuses.length > 0) && wrong === undefined) return undefined
  const how = code === -1 ? 'never ended' : `ended with ${code}${wrong === undefined ? '' : ` and status ${wrong}`}`
  return `${where}: \`${text}\` ${how}${typed === text ? '' : `, typed as \`${typed}\``}:\n${output.trim().slice(-2_000)}`
}

/** The statement without the explanation beside it, and what is typed for it. `:` stands for what is left out. */
function typedFor(
  { text: printed, isOwn }: Statement,
  { isClone }: Workplace,
): { typed: string; standIn: StandIn | undefined } {
  if (isOwn) return { typed: printed, standIn: undefined }
  const text = printed.replace(/\s+#\s[^'"]*$/, '').trim()
  const standIn = standIns.find(({ when }) => when.test(text))
  if (!standIn) return { typed: text, standIn }
  const { as } = standIn
  if (typeof as === 'function') return { typed: as(text), standIn }
  if (as === 'leave out' || (as === 'in a clone' && !isClone)) return { typed: ':', standIn }
  if (as === 'in a clone') return { typed: text, standIn }
  const worksOnClone = text.startsWith('npm ')
  return { typed: worksOnClone && !isClone ? ':' : `another_terminal ${text}`, standIn }
}

function session(script: string, { person, directory }: Workplace): Promise<string> {
  // A file, because standard input belongs to the commands.
  const file = join(person.home, 'session.sh')
  writeFileSync(file, script, { mode: 0o644 })
  const child = spawn('bash', ['-c', 'exec bash "$0" 2>&1', file], {
    cwd: directory,
    env: person.env,
    ...person.account,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  const endGroup = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM')
    } catch {
      // Nothing of it runs any more.
    }
  }
  const guard = setTimeout(endGroup, sessionHangMs)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', () => {
      clearTimeout(guard)
      // What still runs in the background may hold the pipe open.
      setImmediate(() => resolve(output))
    })
  })
}

/** Only ends a session that hangs. */
const sessionHangMs = 4 * hangMs

/** Ends the platforms and port-forwards that a person's commands left in the background, each with one SIGTERM. */
export async function endBackground({ home }: Person): Promise<void> {
  for (const { pid, command } of processesOf(home))
    if (/ up( |$)|port-forward/.test(command)) process.kill(pid, 'SIGTERM')
  await waitUntil('nothing of the session runs', () => processesOf(home).length === 0)
}

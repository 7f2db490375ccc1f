import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { AgentEvent } from '@corral/protocol'
import type { AgentAdapter, AgentExit, AgentParser, AgentTaskInput } from '../agent-adapter.js'

/** A directory in which a real process plays the agent, beside our client. */
export interface ClientBench {
  readonly directory: string
  /** Puts an entry into the inbox, whole. */
  put(name: string, entry: object): void
  /** What the agent has read, as it notes in `read.ndjson`. */
  read<T>(): T[]
  /** Runs the agent to its end. One that says "hangs" is ended by a signal. */
  play(
    input: Pick<AgentTaskInput, 'prompt' | 'options'> & Partial<AgentTaskInput>,
    onEvent?: (event: AgentEvent, parser: AgentParser) => void,
  ): Promise<{ events: AgentEvent[]; parser: AgentParser; exit: AgentExit }>
  close(): void
}

/** `source` is the program that plays the agent, under the name of the agent's own. */
export function clientBench(agent: AgentAdapter, source: string): ClientBench {
  const directory = mkdtempSync(join(tmpdir(), `corral-${agent.name}-`))
  const inboxDir = join(directory, 'inbox')
  const bin = join(directory, 'bin')
  for (const each of [bin, inboxDir]) mkdirSync(each)
  writeFileSync(join(bin, agent.name), source)
  chmodSync(join(bin, agent.name), 0o755)
  return {
    directory,
    put(name, entry) {
      writeFileSync(join(inboxDir, `.${name}`), JSON.stringify(entry))
      renameSync(join(inboxDir, `.${name}`), join(inboxDir, name))
    },
    read: <T>() =>
      readFileSync(join(directory, 'read.ndjson'), 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as T),
    async play(input, onEvent = () => undefined) {
      const launch = agent.launch({ taskId: 't', workDir: directory, stateDir: directory, inboxDir, ...input })
      for (const file of launch.files) {
        mkdirSync(dirname(file.path), { recursive: true })
        writeFileSync(file.path, file.content)
      }
      const child = spawn(launch.argv[0]!, launch.argv.slice(1), {
        cwd: directory,
        env: { ...launch.env, PATH: `${bin}:${process.env.PATH}` },
        stdio: ['ignore', 'pipe', 'inherit'],
        detached: true,
      })
      const parser = agent.createParser()
      const events: AgentEvent[] = []
      child.stdout.on('data', (chunk: Buffer) => {
        for (const event of parser.push(chunk, 'stdout')) {
          events.push(event)
          if (event.type === 'message' && event.text === 'hangs') process.kill(-child.pid!, 'SIGTERM')
          onEvent(event, parser)
        }
      })
      const exit = await new Promise<AgentExit>((resolve) =>
        child.once('close', (code, signal) => resolve({ exitCode: code ?? 143, ...(signal ? { signal: 15 } : {}) })),
      )
      events.push(...parser.end(exit))
      return { events, parser, exit }
    },
    close: () => rmSync(directory, { recursive: true, force: true }),
  }
}

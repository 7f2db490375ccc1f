import * as z from 'zod'
import type { SandboxHandle } from '../sandbox-handle.js'

/** A tool as the AI SDK takes it (`tools` of `generateText` and `streamText`), without depending on that package. */
export interface SandboxTool<Input, Output> {
  readonly description: string
  readonly inputSchema: z.ZodType<Input>
  readonly execute: (input: Input, options?: { abortSignal?: AbortSignal | undefined }) => Promise<Output>
}

export interface SandboxToolsOptions {
  /** Where commands run and relative paths begin; the sandbox's own working directory without it. */
  readonly cwd?: string
  /** Ends a command; 120 s without it. */
  readonly timeoutMs?: number
  /** Longer output and files lose their middle; 20,000 characters without it. */
  readonly maxCharacters?: number
}

export interface CommandOutput {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

/** A type and not an interface: the AI SDK takes an object with any names. */
export type SandboxTools = {
  readonly runCommand: SandboxTool<{ command: string }, CommandOutput>
  readonly readFile: SandboxTool<{ path: string }, { content: string }>
  readonly writeFile: SandboxTool<{ path: string; content: string }, { bytesWritten: number }>
  readonly listFiles: SandboxTool<{ path: string }, { entries: { name: string; type: string; size: number }[] }>
}

const path = z.string().min(1).describe('absolute, or relative to the working directory')

/**
 * A sandbox as tools of the AI SDK. The model's commands run in the sandbox and nowhere else; a command that fails is an
 * answer the model can read, a lost sandbox is an error of the call. Name them as you like in `tools`.
 */
export function sandboxTools(sandbox: SandboxHandle, options: SandboxToolsOptions = {}): SandboxTools {
  const { cwd, timeoutMs = 120_000, maxCharacters = 20_000 } = options
  let home: Promise<string> | undefined
  /** Where commands run, asked for once: a file that a command made is found under the same name. */
  const directory = (signal: AbortSignal | undefined): string | Promise<string> => {
    if (cwd !== undefined) return cwd
    const asking = home ?? workingDirectory(sandbox, signal)
    home = asking
    asking.catch(() => {
      home = undefined
    })
    return asking
  }
  const at = async (name: string, signal: AbortSignal | undefined): Promise<string> =>
    name.startsWith('/') ? name : `${(await directory(signal)).replace(/\/$/, '')}/${name}`
  const cut = (text: string): string => withoutMiddle(text, maxCharacters)
  return {
    runCommand: {
      description: 'Runs a shell command in the sandbox. Answers its exit code and what it wrote.',
      inputSchema: z.object({ command: z.string().min(1) }),
      execute: async ({ command }, { abortSignal } = {}) => {
        const process = sandbox.shell(command, { cwd, timeoutMs, signal: abortSignal })
        const output = { stdout: new Excerpt(maxCharacters), stderr: new Excerpt(maxCharacters) }
        for await (const { stream, data } of process) output[stream].add(data)
        return { exitCode: await process.exitCode, stdout: output.stdout.text(), stderr: output.stderr.text() }
      },
    },
    readFile: {
      description: 'Reads a text file of the sandbox.',
      inputSchema: z.object({ path }),
      execute: async (input, { abortSignal } = {}) => ({
        content: cut(await sandbox.files.readText(await at(input.path, abortSignal), { signal: abortSignal })),
      }),
    },
    writeFile: {
      description: 'Writes a text file in the sandbox, replacing what was there; directories are made.',
      inputSchema: z.object({ path, content: z.string() }),
      execute: async (input, { abortSignal } = {}) => {
        const bytes = new TextEncoder().encode(input.content)
        await sandbox.files.write(await at(input.path, abortSignal), bytes, { signal: abortSignal })
        return { bytesWritten: bytes.length }
      },
    },
    listFiles: {
      description: 'Lists a directory of the sandbox.',
      inputSchema: z.object({ path }),
      execute: async (input, { abortSignal } = {}) => {
        const found = await sandbox.files.list(await at(input.path, abortSignal), { signal: abortSignal })
        return { entries: found.map(({ name, type, size }) => ({ name, type, size })) }
      },
    },
  }
}

async function workingDirectory(sandbox: SandboxHandle, signal: AbortSignal | undefined): Promise<string> {
  const { stdout } = await sandbox.shell('pwd', { signal }).ok()
  return stdout.replace(/\n$/, '')
}

function withoutMiddle(text: string, most: number): string {
  const excerpt = new Excerpt(most)
  excerpt.add(new TextEncoder().encode(text))
  return excerpt.text()
}

/** The beginning and the end of a long text, with a line between them that says how much is missing; holds no more of it. */
class Excerpt {
  readonly #most: number
  readonly #half: number
  readonly #decoder = new TextDecoder()
  #whole = ''
  #head: string | undefined
  #tail = ''
  #length = 0

  constructor(most: number) {
    this.#most = most
    this.#half = Math.floor(most / 2)
  }

  add(data: Uint8Array): void {
    this.#push(this.#decoder.decode(data, { stream: true }))
  }

  text(): string {
    this.#push(this.#decoder.decode())
    if (this.#head === undefined) return this.#whole
    const tail = this.#half === 0 ? '' : this.#tail.slice(-this.#half)
    return `${this.#head}\n[${this.#length - 2 * this.#half} characters left out]\n${tail}`
  }

  #push(text: string): void {
    this.#length += text.length
    if (this.#head !== undefined) {
      this.#tail = (this.#tail + text).slice(-this.#most)
      return
    }
    this.#whole += text
    if (this.#length <= this.#most) return
    this.#head = this.#whole.slice(0, this.#half)
    this.#tail = this.#whole.slice(-this.#most)
    this.#whole = ''
  }
}

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
  const at = (name: string): string =>
    name.startsWith('/') ? name : `${(cwd ?? '/workspace').replace(/\/$/, '')}/${name}`
  const cut = (text: string): string => withoutMiddle(text, maxCharacters)
  return {
    runCommand: {
      description: 'Runs a shell command in the sandbox. Answers its exit code and what it wrote.',
      inputSchema: z.object({ command: z.string().min(1) }),
      execute: async ({ command }, { abortSignal } = {}) => {
        const { exitCode, stdout, stderr } = await sandbox.shell(command, { cwd, timeoutMs, signal: abortSignal })
        return { exitCode, stdout: cut(stdout), stderr: cut(stderr) }
      },
    },
    readFile: {
      description: 'Reads a text file of the sandbox.',
      inputSchema: z.object({ path }),
      execute: async (input, { abortSignal } = {}) => ({
        content: cut(await sandbox.files.readText(at(input.path), { signal: abortSignal })),
      }),
    },
    writeFile: {
      description: 'Writes a text file in the sandbox, replacing what was there; directories are made.',
      inputSchema: z.object({ path, content: z.string() }),
      execute: async (input, { abortSignal } = {}) => {
        const bytes = new TextEncoder().encode(input.content)
        await sandbox.files.write(at(input.path), bytes, { signal: abortSignal })
        return { bytesWritten: bytes.length }
      },
    },
    listFiles: {
      description: 'Lists a directory of the sandbox.',
      inputSchema: z.object({ path }),
      execute: async (input, { abortSignal } = {}) => {
        const found = await sandbox.files.list(at(input.path), { signal: abortSignal })
        return { entries: found.map(({ name, type, size }) => ({ name, type, size })) }
      },
    },
  }
}

/** The beginning and the end of a long text, with a line between them that says how much is missing. */
function withoutMiddle(text: string, most: number): string {
  if (text.length <= most) return text
  const half = Math.floor(most / 2)
  return `${text.slice(0, half)}\n[${text.length - 2 * half} characters left out]\n${text.slice(text.length - half)}`
}

import { execFile } from 'node:child_process'
import { hangMs } from './wait-until.js'

export interface ProgramResult {
  /** The exit code; 128 and more stand for a signal or a timeout. */
  code: number
  stdout: string
  stderr: string
}

export interface ProgramOptions {
  cwd?: string
  env?: Record<string, string | undefined>
  stdin?: string
  timeoutMs?: number
}

/** Runs a program to its end. Never rejects for an exit code: the code is the result. */
export function runProgram(
  program: string,
  args: readonly string[],
  { cwd, env, stdin = '', timeoutMs = hangMs }: ProgramOptions = {},
): Promise<ProgramResult> {
  return new Promise((resolve) => {
    const child = execFile(
      program,
      [...args],
      {
        ...(cwd ? { cwd } : {}),
        ...(env ? { env } : {}),
        timeout: timeoutMs,
        killSignal: 'SIGKILL',
        maxBuffer: 64 * 1024 * 1024,
      },
      (error, stdout, stderr) => {
        const code = error ? (typeof error.code === 'number' ? error.code : 128) : 0
        resolve({ code, stdout, stderr: error && !stderr ? error.message : stderr })
      },
    )
    // A program that does not read its standard input closes it: that is its right.
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(stdin)
  })
}

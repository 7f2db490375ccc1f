import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Programs the wrapper calls, by absolute path: the payload's PATH must not decide. */
export interface WrapperTools {
  readonly cat: string
  readonly mkfifo: string
  readonly setsid: string
  readonly sleep: string
}

/** Finds the wrapper's programs, or names the ones that are missing. */
export function findWrapperTools(path: string): WrapperTools {
  const missing: string[] = []
  const find = (name: string): string => {
    const found = findProgram(name, path)
    if (!found) missing.push(name)
    return found ?? name
  }
  const tools = {
    cat: find('cat'),
    mkfifo: find('mkfifo'),
    setsid: find('setsid'),
    sleep: find('sleep'),
  }
  if (missing.length > 0) throw new Error(`these programs are needed and were not found: ${missing.join(', ')}`)
  return tools
}

/** The file a command name stands for on this PATH, or undefined. A name with a slash is its own path. */
export function findProgram(name: string, path: string, cwd = '/'): string | undefined {
  const candidates = name.includes('/')
    ? [name.startsWith('/') ? name : join(cwd, name)]
    : path.split(delimiter).map((directory) => join(directory === '' ? cwd : directory, name))
  return candidates.find(isExecutable)
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    // Not there or not ours to run; the caller goes on looking.
    return false
  }
}

/**
 * The script that runs a process so that it needs no daemon: `sh -c SCRIPT corral-process DIRECTORY STDIN ARGV...`.
 *
 * - `started` is a latch, created only where it is absent: of two wrappers for one record, one runs.
 * - Output goes through pipes to two `cat`s, not straight into files: a script that says `> /dev/stderr` would truncate
 *   a file, and a pipe keeps what was written.
 * - The payload is leader of its own session: signals to its group miss the wrapper, which therefore always lives to
 *   write `exit`. The wrapper catches signals instead of ignoring them, since ignoring would be inherited.
 * - An open stdin is a FIFO that a `sleep` holds open; ending the `sleep` is what closes it.
 * - `drained` says that every writer is gone. A background child may hold the pipes long after `exit`.
 *
 * Files are written in one piece that ends with a line end: a reader that finds none looks again. Every program less is
 * a millisecond less, so the shell's own words do what they can. Variables have odd names because an assignment would change a variable of the same name in the payload's environment.
 */
export function wrapperScript(tools: WrapperTools): string {
  const q = shellQuote
  return `
(set -C; : >"$1/started") 2>/dev/null || exit 125
echo $$ >"$1/wrapper"
trap : HUP INT QUIT TERM USR1 USR2 PIPE ALRM
${q(tools.mkfifo)} "$1/out" "$1/err" "$1/in" || exit 126
__corral_d=$1; __corral_in=/dev/null
${q(tools.cat)} <"$1/out" >>"$1/stdout" & __corral_o=$!
${q(tools.cat)} <"$1/err" >>"$1/stderr" & __corral_e=$!
if [ "$2" = open ]; then
  __corral_in=$1/in
  ${q(tools.sleep)} 2147483647 >"$1/in" & __corral_k=$!
  echo "$__corral_k" >"$1/keeper"
fi
shift 2
${q(tools.setsid)} /bin/sh -c 'echo $$ >"$0/pid"; exec "$@"' "$__corral_d" "$@" <"$__corral_in" >"$__corral_d/out" 2>"$__corral_d/err"
__corral_c=$?
echo "$__corral_c" >"$__corral_d/exit"
if [ -n "$__corral_k" ]; then kill "$__corral_k" 2>/dev/null; fi
wait "$__corral_o" "$__corral_e" 2>/dev/null
: >"$__corral_d/drained"
exit "$__corral_c"
`
}

/** A word that `sh` reads as exactly this text. */
export function shellQuote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`
}

/** What a process may use at most. Reaching one ends it. */
export interface ProcessLimits {
  /** Address space of one process. */
  memoryBytes: number
  cpuSeconds: number
  /** The largest file it may write. */
  fileBytes: number
}

/** A program that reads what a sandbox sent, and the little it needs of the machine. */
export interface ConfinedCommand {
  argv: readonly string[]
  /** Directories it may read besides the system's programs and libraries. */
  readable: readonly string[]
  /** The directories it may change. */
  writable: readonly string[]
}

/**
 * How such a program is started: the argument vector that runs it with less than the platform's own rights. On one
 * machine the platform adds namespaces of its own; everywhere at least the limits of a process hold.
 */
export type Confine = (command: ConfinedCommand) => readonly string[]

/**
 * Limits by the shell's `ulimit`, which is everywhere git is. A limit that cannot be set because a lower one holds
 * already is fine; one that cannot be set at all is not, since the program would run without it. The hard limit of CPU
 * time lies above the soft one, so that the signal says which limit it was.
 */
export function limitedArgv(argv: readonly string[], limits: ProcessLimits): string[] {
  const script = `
limit() { ulimit -S "$1" "$2" 2>/dev/null || [ "$(ulimit "$1")" != unlimited ] || exit 126; }
limit -v ${Math.ceil(limits.memoryBytes / 1024)}
ulimit -H -t ${limits.cpuSeconds + 10} 2>/dev/null
limit -t ${limits.cpuSeconds}
limit -f ${Math.ceil(limits.fileBytes / 512)}
limit -c 0
exec "$@"`
  return ['/bin/sh', '-c', script, 'limited', ...argv]
}

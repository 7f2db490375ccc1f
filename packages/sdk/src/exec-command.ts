/** What a command line is wrapped with before it goes to the container. */
export interface ExecWrapping {
  readonly cwd?: string | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
  /** Put into the command's environment, where `killArgv` finds it and everything it started. */
  readonly marker?: string | undefined
}

export const markerVariable = 'CORRAL_EXEC_ID'

/**
 * The argument vector to send. Kubernetes' exec knows neither directory nor environment and leaves the process alone
 * when the connection closes; `env` and, where a directory is asked for, `sh` in the container make up for it.
 */
export function execArgv(command: readonly string[], wrapping: ExecWrapping): string[] {
  if (command.length === 0) throw new TypeError('a command needs at least one argument')
  const { cwd, env = {}, marker } = wrapping
  const inDirectory =
    cwd === undefined ? [...command] : ['/bin/sh', '-c', 'cd -- "$0" || exit 126; exec "$@"', cwd, ...command]
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  if (marker !== undefined) variables.push(`${markerVariable}=${marker}`)
  return variables.length === 0 ? inDirectory : ['env', ...variables, ...inDirectory]
}

/**
 * A command that kills every process whose environment carries the marker: the one we started and its descendants,
 * whatever group or session they moved to. Several rounds, since a process may fork while the list is read.
 */
export function killArgv(marker: string): string[] {
  const script = `
for round in 1 2 3 4 5; do
  found=
  for file in $(grep -ls "$0" /proc/[0-9]*/environ 2>/dev/null); do
    pid=\${file#/proc/}
    kill -KILL "\${pid%/environ}" 2>/dev/null && found=1
  done
  [ -n "$found" ] || exit 0
done`
  return ['/bin/sh', '-c', script, `${markerVariable}=${marker}`]
}

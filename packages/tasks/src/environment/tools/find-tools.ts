import { type DaemonClient, type ToolName, toolNames } from '@corral/protocol'
import { runCommand } from '../../sandbox/run-command.js'
import type { FoundTool } from './resolve-tools.js'

/**
 * In: WANTED (names of tools). Out: a line `name version directory` for each toolchain: what PATH has (no directory), what
 * lies beside it below /usr, and what the operator has added. It runs before anything of the repository does.
 */
const findScript = `
version_of() {
  case $1 in
    node) "$2" --version ;;
    go) "$2" version | sed -n 's/^go version go\\([^ ]*\\).*/\\1/p' ;;
    rust) "$2" --version | sed -n 's/^rustc \\([^ ]*\\).*/\\1/p' ;;
    python) "$2" --version 2>&1 | sed -n 's/^Python //p' ;;
    java) "$2" -version 2>&1 | sed -n 's/^[^"]*version "\\([^"_]*\\).*/\\1/p' | sed 's/^1\\.\\([5-8]\\)/\\1/' | head -n 1 ;;
    uv) "$2" --version | sed -n 's/^uv \\([^ ]*\\).*/\\1/p' ;;
  esac 2> /dev/null
}
program_of() {
  case $1 in rust) echo rustc ;; python) echo python3 ;; *) echo "$1" ;; esac
}
for name in $WANTED; do
  program=$(program_of "$name")
  if command -v "$program" > /dev/null 2>&1; then echo "$name $(version_of "$name" "$program")"; fi
  case $name in
    go) beside='/usr/local/go/bin /usr/lib/go-*/bin' ;;
    java) beside='/usr/lib/jvm/*/bin' ;;
    *) beside= ;;
  esac
  for bin in $beside; do
    if [ -x "$bin/$program" ]; then echo "$name $(version_of "$name" "$bin/$program") $bin"; fi
  done
  for bin in "\${CORRAL_TOOLCHAINS:-/opt/corral/toolchains}/$name"/*/bin; do
    if [ ! -x "$bin/$program" ]; then continue; fi
    version=\${bin%/bin}
    echo "$name \${version##*/} $bin"
  done
done
exit 0
`

/** The toolchains of the sandbox, of those that are wanted. */
export async function findTools(
  daemon: DaemonClient,
  taskUid: string,
  wanted: readonly ToolName[],
  signal: AbortSignal,
): Promise<FoundTool[]> {
  if (wanted.length === 0) return []
  const { stdout } = await runCommand(
    daemon,
    `${taskUid}.tools`,
    { argv: ['/bin/sh', '-c', findScript], env: { WANTED: wanted.join(' '), GOTOOLCHAIN: 'local' } },
    { signal, isRepeatable: true, timeoutMs: 120_000 },
  )
  return readFoundTools(stdout)
}

/** Lines of another form are left out: a program may have said anything. Pure. */
export function readFoundTools(text: string): FoundTool[] {
  return text.split('\n').flatMap((line) => {
    const [name = '', version = '', bin = '', ...rest] = line.split(' ')
    const isTool = (toolNames as readonly string[]).includes(name) && /^v?\d[\w.+-]*$|^nightly[\w.-]*$/.test(version)
    if (!isTool || rest.length > 0 || (bin !== '' && !bin.startsWith('/'))) return []
    return [{ name: name as ToolName, version: version.replace(/^v/, ''), bin }]
  })
}

import type { KubeClient, ObjectRef } from '@corral/kube'
import type { BytesIn, FileInfo, SignalName } from '@corral/protocol'
import { SandboxError, toSandboxError } from '../sandbox-error.js'
import { type ExecProcess, execStream, lostReason } from '../sandbox-exec.js'
import type {
  FileCall,
  FileEntry,
  ProcessEvent,
  ProcessSpec,
  RuntimeProcess,
  SandboxRuntime,
} from './sandbox-runtime.js'
import { unsupported } from './unsupported.js'

const statFormat = '%F|%s|%a|%Y|%n'
const kind = 'pod-exec'

/** Nothing but the kubelet's exec: commands, and files through `sh`, `cat`, `stat` and `tar` of the image. */
export function podExecRuntime(
  kube: KubeClient,
  pod: ObjectRef,
  options: { container?: string | undefined; onCut: (failure: SandboxError) => Promise<void> },
): SandboxRuntime {
  const { container, onCut } = options
  const start = (spec: ProcessSpec): RuntimeProcess => {
    if (spec.user !== undefined) throw unsupported(kind, 'another user')
    const opening = execStream(kube, pod, spec.argv, {
      container,
      cwd: spec.cwd,
      env: spec.env,
      stdin: spec.stdin !== undefined,
      tty: spec.pty !== undefined,
    })
    opening.catch(() => {})
    return { id: undefined, events: events(opening, spec, onCut), ...controls(opening) }
  }

  /** A command of ours, its output as it comes; a failure is told in the words of its stderr. */
  async function* output(argv: readonly string[], call: FileCall, stdin?: BytesIn): AsyncIterable<Uint8Array> {
    const process = await execStream(kube, pod, argv, {
      container,
      signal: call.signal,
      stdin: stdin !== undefined,
    })
    let stderr = ''
    const told = (async () => {
      for await (const chunk of process.stderr) stderr = (stderr + Buffer.from(chunk).toString('utf8')).slice(-2048)
    })()
    const fed = stdin === undefined ? undefined : feed(process, stdin)
    fed?.catch(() => {})
    try {
      yield* process.stdout
      await told
      const exit = await process.wait()
      if (call.signal?.aborted) throw new SandboxError('Aborted', 'the call was aborted')
      if (exit.exitCode !== 0) throw await failed(exit, stderr.trim(), onCut)
      await fed
    } finally {
      // Breaking off ends the command; one that has ended is not there any more.
      process.kill().catch(() => {})
    }
  }
  const run = async (argv: readonly string[], call: FileCall, stdin?: BytesIn): Promise<string> => {
    const chunks: Uint8Array[] = []
    for await (const chunk of output(argv, call, stdin)) chunks.push(chunk)
    return Buffer.concat(chunks).toString('utf8')
  }
  const shell = (script: string, args: readonly string[]): string[] => ['/bin/sh', '-c', script, 'sh', ...args]

  return {
    kind,
    start,
    metrics: async () => {
      throw unsupported(kind, 'usage')
    },
    bindEnv: async () => {
      throw unsupported(kind, 'environment after the start')
    },
    files: {
      read: (path, call) =>
        output(shell('[ ! -d "$1" ] || { echo "Is a directory" >&2; exit 1; }; cat -- "$1"', [path]), call),
      async write(path, data, { mode, ...call }) {
        const script = `set -e; d=$(dirname -- "$1"); mkdir -p -- "$d"; t="$d/.corral-$$"; trap 'rm -f -- "$t"' EXIT
[ ! -d "$1" ] || { echo "Is a directory" >&2; exit 1; }
cat >"$t"; chmod "$2" "$t"; mv -f -- "$t" "$1"; trap - EXIT`
        await run(shell(script, [path, mode ?? '0644']), call, data)
      },
      async stat(path, call) {
        try {
          return parseStat(await run(['stat', '-c', statFormat, '--', path], call))[0]
        } catch (error) {
          if (error instanceof SandboxError && error.code === 'NotFound') return undefined
          throw error
        }
      },
      async *list(path, { recursive, glob, ...call }): AsyncIterable<FileEntry> {
        const depth = recursive || glob !== undefined ? '' : '-maxdepth 1'
        const script = `cd -- "$1" && find . -mindepth 1 ${depth} -exec stat -c '${statFormat}' -- {} +`
        const { matchesGlob } = await import('node:path')
        for (const entry of parseStat(await run(shell(script, [path]), call))) {
          const inside = entry.name.replace(/^\.\//, '')
          if (glob !== undefined && !matchesGlob(inside, glob)) continue
          yield { ...entry, name: inside.slice(inside.lastIndexOf('/') + 1), path: inside }
        }
      },
      mkdir: async (path, call) => void (await run(['mkdir', '-p', '--', path], call)),
      move: async (from, to, { overwrite, ...call }) =>
        void (await run(shell(`${overwrite ? '' : refuseTaken}mv -T -f -- "$1" "$2"`, [from, to]), call)),
      copy: async (from, to, { overwrite, ...call }) =>
        void (await run(shell(`${overwrite ? '' : refuseTaken}cp -a -- "$1" "$2"`, [from, to]), call)),
      async remove(path, { recursive, ...call }) {
        const script = `[ -e "$1" ] || [ -L "$1" ] || exit 0; ${recursive ? 'rm -rf -- "$1"' : 'if [ -d "$1" ] && [ ! -L "$1" ]; then rmdir -- "$1"; else rm -f -- "$1"; fi'}`
        await run(shell(script, [path]), call)
      },
      watch: () => {
        throw unsupported(kind, 'watching files')
      },
      pack: (directory, call) => output(['tar', '-C', directory, '-cf', '-', '.'], call),
      unpack: async (directory, tar, call) =>
        void (await run(shell('mkdir -p -- "$1" && tar -C "$1" -xof -', [directory]), call, tar)),
    },
  }
}

const refuseTaken = '[ ! -e "$2" ] && [ ! -L "$2" ] || { echo "File exists" >&2; exit 1; }; '

async function* events(
  opening: Promise<ExecProcess>,
  spec: ProcessSpec,
  onCut: (failure: SandboxError) => Promise<void>,
): AsyncIterable<ProcessEvent> {
  const process = await opening
  if (spec.stdin instanceof Uint8Array) void feed(process, spec.stdin).catch(() => {})
  let offset = 0
  try {
    for await (const { stream, data } of merged(process)) {
      yield { type: 'data', stream, data, offset }
      offset += data.length
    }
  } catch (error) {
    // Output that breaks off may mean that the sandbox is gone: then that is the error.
    const failure = toSandboxError(error)
    if (failure.code === 'ConnectionLost') await onCut(failure)
    throw failure
  }
  const exit = await process.wait()
  const lost = lostReason(exit)
  if (lost !== undefined) {
    const failure = new SandboxError('ConnectionLost', lost)
    await onCut(failure)
    throw failure
  }
  yield { type: 'exit', exitCode: exit.exitCode, signal: exit.signal }
}

/** Both streams in the order in which they arrive. */
async function* merged(process: ExecProcess): AsyncIterable<{ stream: 'stdout' | 'stderr'; data: Uint8Array }> {
  const iterators = { stdout: process.stdout[Symbol.asyncIterator](), stderr: process.stderr[Symbol.asyncIterator]() }
  const next = async (stream: 'stdout' | 'stderr') => ({ stream, result: await iterators[stream].next() })
  const pending = new Map([
    ['stdout', next('stdout')],
    ['stderr', next('stderr')],
  ])
  try {
    while (pending.size > 0) {
      const { stream, result } = await Promise.race(pending.values())
      if (result.done) pending.delete(stream)
      else {
        pending.set(stream, next(stream))
        yield { stream, data: result.value }
      }
    }
  } finally {
    for (const waiting of pending.values()) waiting.catch(() => {})
  }
}

function controls(opening: Promise<ExecProcess>): Pick<RuntimeProcess, 'write' | 'end' | 'kill' | 'resize'> {
  return {
    write: async (data) => (await opening).writeStdin(data),
    end: async () => (await opening).endStdin(),
    kill: async (signal: SignalName) => {
      if (signal !== 'SIGKILL' && signal !== 'SIGTERM') throw unsupported(kind, `signal ${signal}`)
      await (await opening).kill()
    },
    resize: async ({ columns, rows }) => (await opening).resize(columns, rows),
  }
}

async function feed(process: ExecProcess, data: BytesIn): Promise<void> {
  if (typeof data === 'string') await process.writeStdin(new TextEncoder().encode(data))
  else if (data instanceof Uint8Array) await process.writeStdin(data)
  else for await (const chunk of data) await process.writeStdin(chunk)
  process.endStdin()
}

async function failed(
  exit: { exitCode: number; message?: string },
  stderr: string,
  onCut: (failure: SandboxError) => Promise<void>,
): Promise<SandboxError> {
  if (exit.exitCode < 0 || stderr === '') {
    const failure = new SandboxError('ConnectionLost', exit.message ?? `the command ended with ${exit.exitCode}`)
    await onCut(failure)
    return failure
  }
  const code = /No such file/i.test(stderr)
    ? 'NotFound'
    : /Permission denied|Operation not permitted/i.test(stderr)
      ? 'PermissionDenied'
      : /Is a directory/i.test(stderr)
        ? 'IsADirectory'
        : /Not a directory/i.test(stderr)
          ? 'NotADirectory'
          : /File exists/i.test(stderr)
            ? 'AlreadyExists'
            : /not empty/i.test(stderr)
              ? 'DirectoryNotEmpty'
              : /No space left/i.test(stderr)
                ? 'DiskFull'
                : 'CommandFailed'
  return new SandboxError(code, stderr)
}

function parseStat(text: string): FileInfo[] {
  const found: FileInfo[] = []
  for (const line of text.split('\n')) {
    const match = /^([^|]*)\|(\d+)\|([0-7]+)\|(\d+)\|(.*)$/.exec(line)
    if (!match) continue
    const [, word = '', size, mode = '', time, name = ''] = match
    const type = /directory/.test(word)
      ? 'directory'
      : /link/.test(word)
        ? 'symlink'
        : /file/.test(word)
          ? 'file'
          : 'other'
    found.push({
      name,
      type,
      size: Number(size),
      mode: mode.padStart(4, '0'),
      modified_at: new Date(Number(time) * 1000).toISOString(),
    })
  }
  return found
}

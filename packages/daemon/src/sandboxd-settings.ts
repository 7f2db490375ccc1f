/** Upstream's flags for sandboxd, as its templates give them. */
export interface SandboxdSettings {
  readonly host: string
  readonly restPort: number
  readonly grpcPort: number
  readonly root: string
  readonly metadataPrefix: string
}

const known = [
  'listen-host',
  'grpc-port',
  'rest-port',
  'root-dir',
  'metadata-env-prefix',
  'shutdown-timeout',
  'http-idle-timeout',
  'stream-chunk-size',
] as const

/**
 * Undefined unless `CORRAL_DAEMON_SANDBOXD=true`: the ports 8080 and 9090 are otherwise left to the programs of the
 * sandbox. Throws on a flag that is not known or makes no sense.
 */
export function readSandboxdSettings(env: NodeJS.ProcessEnv, argv: readonly string[]): SandboxdSettings | undefined {
  if (env.CORRAL_DAEMON_SANDBOXD !== 'true') return undefined
  const flags = readFlags(argv)
  const restPort = portOf(flags, 'rest-port', 8080)
  const grpcPort = portOf(flags, 'grpc-port', 9090)
  if (restPort === grpcPort && restPort !== 0) throw new Error('--rest-port and --grpc-port must differ')
  const root = flags.get('root-dir') ?? '/workspace'
  if (root === '') throw new Error('--root-dir must not be empty')
  return {
    host: flags.get('listen-host') ?? '::',
    restPort,
    grpcPort,
    root: root.length > 1 ? root.replace(/\/+$/, '') : root,
    metadataPrefix: flags.get('metadata-env-prefix') ?? 'SANDBOX_',
  }
}

function readFlags(argv: readonly string[]): Map<string, string> {
  const flags = new Map<string, string>()
  for (let i = 0; i < argv.length; i += 1) {
    const match = /^--?([a-z-]+)(?:=(.*))?$/.exec(argv[i]!)
    if (!match?.[1]) throw new Error(`unknown argument "${argv[i]}"`)
    const [, name, given] = match
    if (name.startsWith('zap-')) continue
    if (!known.some((flag) => flag === name)) throw new Error(`unknown flag --${name}`)
    flags.set(name, given ?? argv[++i] ?? '')
  }
  return flags
}

function portOf(flags: Map<string, string>, name: string, fallback: number): number {
  const text = flags.get(name)
  if (text === undefined) return fallback
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new Error(`--${name} must be a port, not "${text}"`)
  return port
}

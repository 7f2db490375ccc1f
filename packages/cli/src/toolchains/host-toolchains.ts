import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { ToolName } from '@corral/protocol'

/** A toolchain on this machine. */
export interface HostToolchain {
  tool: ToolName
  version: string
  directory: string
  /** Below /usr, which every sandbox sees as it is. */
  isShown: boolean
}

/** The program that makes a directory a toolchain. */
const programs: Readonly<Record<ToolName, string>> = {
  node: 'node',
  go: 'go',
  rust: 'rustc',
  python: 'python3',
  java: 'java',
  uv: 'uv',
}

/** Directories that hold one toolchain each, as version managers and installers leave them. */
function homes(env: NodeJS.ProcessEnv): { tool: ToolName; directory: string }[] {
  const home = env.HOME ?? homedir()
  const share = env.XDG_DATA_HOME ?? join(home, '.local/share')
  const managed = [env.MISE_DATA_DIR ?? join(share, 'mise'), env.ASDF_DATA_DIR ?? join(home, '.asdf')].flatMap(
    (manager) =>
      (
        [
          ['node', 'nodejs'],
          ['node', 'node'],
          ['go', 'golang'],
          ['go', 'go'],
          ['python', 'python'],
          ['rust', 'rust'],
          ['java', 'java'],
          ['uv', 'uv'],
        ] as const
      ).map(([tool, name]) => ({ tool, directory: join(manager, 'installs', name) })),
  )
  const several: { tool: ToolName; directory: string; inner?: string }[] = [
    { tool: 'python', directory: env.UV_PYTHON_INSTALL_DIR ?? join(share, 'uv/python') },
    { tool: 'node', directory: join(env.FNM_DIR ?? join(share, 'fnm'), 'node-versions'), inner: 'installation' },
    { tool: 'node', directory: join(env.VOLTA_HOME ?? join(home, '.volta'), 'tools/image/node') },
    { tool: 'node', directory: join(env.NODENV_ROOT ?? join(home, '.nodenv'), 'versions') },
    { tool: 'go', directory: join(env.GOENV_ROOT ?? join(home, '.goenv'), 'versions') },
    { tool: 'java', directory: join(home, '.jdks') },
    { tool: 'rust', directory: join(env.RUSTUP_HOME ?? join(home, '.rustup'), 'toolchains') },
    { tool: 'python', directory: join(env.PYENV_ROOT ?? join(home, '.pyenv'), 'versions') },
    { tool: 'node', directory: join(env.NVM_DIR ?? join(home, '.nvm'), 'versions/node') },
    { tool: 'java', directory: join(env.SDKMAN_DIR ?? join(home, '.sdkman'), 'candidates/java') },
    { tool: 'java', directory: '/usr/lib/jvm' },
    { tool: 'go', directory: join(home, 'sdk') },
    { tool: 'go', directory: join(env.GOPATH ?? join(home, 'go'), 'pkg/mod/golang.org') },
    ...managed,
    // asdf keeps packages of Go beside Go.
    ...managed.flatMap((each) => (each.tool === 'go' ? [{ ...each, inner: 'go' }] : [])),
  ]
  const single: { tool: ToolName; directory: string }[] = ['/usr/local/go', '/opt/go', '/usr/lib/go']
    .map((directory) => ({ tool: 'go' as const, directory }))
    .concat(
      namesIn('/usr/lib').flatMap((name) =>
        /^go-\d/.test(name) ? [{ tool: 'go', directory: `/usr/lib/${name}` }] : [],
      ),
    )
  return [
    ...single,
    ...several.flatMap(({ tool, directory, inner = '' }) =>
      namesIn(directory).map((name) => ({ tool, directory: join(directory, name, inner) })),
    ),
  ]
}

/** What version managers and installers have put on this machine; each real directory once. */
export function findHostToolchains(env: NodeJS.ProcessEnv): HostToolchain[] {
  const seen = new Set<string>()
  return homes(env).flatMap(({ tool, directory }) => {
    const real = realPath(directory)
    if (real === undefined || seen.has(`${tool} ${real}`)) return []
    seen.add(`${tool} ${real}`)
    const found = toolchainAt(real)
    return found?.tool === tool ? [found] : []
  })
}

/** The newest with this front of a version, or of this channel of Rust; of any where it is empty. Pure. */
export function newestToolchain(there: readonly HostToolchain[], wanted: string): HostToolchain | undefined {
  const isWanted = ({ version }: HostToolchain): boolean => {
    if (wanted === 'nightly') return version.includes('nightly')
    if (wanted === '' || wanted === 'stable') return true
    return version === wanted || version.startsWith(`${wanted}.`)
  }
  // A release before any preview: no task that asks for the front of a version is content with a nightly build.
  const isPreview = (each: HostToolchain): number => Number(each.version.includes('-'))
  return there
    .filter(isWanted)
    .sort((a, b) => isPreview(a) - isPreview(b) || b.version.localeCompare(a.version, 'en', { numeric: true }))[0]
}

/** The toolchain in this directory: one whose `bin` has its program. */
export function toolchainAt(directory: string): HostToolchain | undefined {
  const real = realPath(directory)
  if (real === undefined) return undefined
  for (const [tool, program] of Object.entries(programs) as [ToolName, string][]) {
    const path = join(real, 'bin', program)
    if (!existsSync(path)) continue
    const version = versionOf(tool, real, path)
    if (version !== undefined) return { tool, version, directory: real, isShown: real.startsWith('/usr/') }
  }
  return undefined
}

function versionOf(tool: ToolName, directory: string, program: string): string | undefined {
  try {
    if (tool === 'go') return /^go(\S+)/.exec(readFileSync(join(directory, 'VERSION'), 'utf8'))?.[1]
    if (tool === 'java') {
      const release = join(directory, 'release')
      if (existsSync(release)) return /^JAVA_VERSION="([^"_]+)/m.exec(readFileSync(release, 'utf8'))?.[1]
      return undefined
    }
    // Its own library is found by its own path; nothing of the caller's settings may change what it says.
    const said = execFileSync(program, ['--version'], {
      encoding: 'utf8',
      timeout: 30_000,
      env: { PATH: '/usr/bin:/bin' },
    })
    const version = /(\d+\.\d+[\w.+-]*)/.exec(said)?.[1]
    return version
  } catch {
    // Broken, or for another machine: no toolchain.
    return undefined
  }
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory).sort()
  } catch {
    return []
  }
}

import type { SandboxHandle } from '@corral/agent-sandbox-sdk'
import { CorralError } from '@corral/protocol'

interface Places {
  readonly work: string
  readonly home: string
}

const known = new WeakMap<SandboxHandle, Promise<Places>>()

/** The absolute path of what a shell command of the sandbox would find under this name. */
export async function absolutePath(sandbox: SandboxHandle, path: string, signal: AbortSignal): Promise<string> {
  if (path.startsWith('/')) return path
  const { work, home } = await placesOf(sandbox, signal)
  return path === '~' || path.startsWith('~/') ? home + path.slice(1) : `${work}/${path}`
}

/** Asked for once, at the first path that needs it. */
function placesOf(sandbox: SandboxHandle, signal: AbortSignal): Promise<Places> {
  const asking = known.get(sandbox) ?? ask(sandbox, signal)
  known.set(sandbox, asking)
  asking.catch(() => known.delete(sandbox))
  return asking
}

async function ask(sandbox: SandboxHandle, signal: AbortSignal): Promise<Places> {
  const { stdout } = await sandbox.shell('printf "%s\\0%s" "$PWD" "$HOME"', { signal }).ok()
  const [work, home] = stdout.split('\0')
  if (!work?.startsWith('/'))
    throw new CorralError('Invalid', 'the sandbox has no working directory: name an absolute path')
  return { work: work.replace(/\/$/, ''), home: home?.startsWith('/') ? home.replace(/\/$/, '') : work }
}

import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { SandboxWorkspace } from '@corral/protocol'

/** The directory the template set aside for work: `CORRAL_WORKSPACE`, `/workspace`, else the home directory. */
export async function findWorkspace(
  env: Readonly<Record<string, string | undefined>>,
  usual = '/workspace',
): Promise<SandboxWorkspace | undefined> {
  for (const candidate of [env.CORRAL_WORKSPACE, usual, env.HOME]) {
    if (!candidate) continue
    try {
      if (!(await stat(candidate)).isDirectory()) continue
      await access(candidate, constants.W_OK | constants.X_OK)
      const directory = resolve(candidate)
      return { directory, home: env.HOME || directory }
    } catch {
      // Not there, or not ours: the next one is tried.
    }
  }
  return undefined
}

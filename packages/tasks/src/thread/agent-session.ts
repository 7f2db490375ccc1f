import type { AgentAdapter } from '@corral/agents'
import { isCapable } from '@corral/agents'
import type { DaemonClient } from '@corral/protocol'
import { errorCode } from '@corral/resources'
import * as z from 'zod'
import type { TaskRecord } from '../records/task-records.js'

/** What is kept of a session at most: beyond it a follow-up begins a new one. */
export interface SessionLimits {
  files: number
  bytes: number
}

export const sessionLimits: Readonly<SessionLimits> = { files: 500, bytes: 64 * 1024 * 1024 }

const sessionFileSchema = z.object({ path: z.string(), content: z.base64() })
const sessionSchema = z.object({ files: z.array(sessionFileSchema) })

interface SessionPlace {
  daemon: Pick<DaemonClient, 'statFile' | 'walk' | 'readFile' | 'writeFile'>
  adapter: Pick<AgentAdapter, 'sessions' | 'capabilities'>
  record: Pick<TaskRecord, 'find' | 'read' | 'write'>
  /** The agent's state directory inside the sandbox. */
  stateDirectory: string
  signal: AbortSignal
}

/** Whether this agent has sessions that a later task can go on with. */
export function hasSessions(adapter: SessionPlace['adapter']): boolean {
  return adapter.sessions !== undefined && isCapable(adapter.capabilities, 'resume')
}

/**
 * Takes the files of the agent's session out of the sandbox into the record of its task. Only plain files below the paths
 * the adapter names are taken: what a link leads to is not the agent's session. Undefined where there is none, or more
 * than is kept.
 */
export async function keepSession(
  place: SessionPlace,
  limits: SessionLimits = sessionLimits,
): Promise<{ sizeBytes: number } | undefined> {
  const { daemon, adapter, record, stateDirectory, signal } = place
  const files: z.infer<typeof sessionFileSchema>[] = []
  let bytes = 0
  for (const path of await sessionFiles(place, limits.files)) {
    if (files.length === limits.files) return undefined
    const content = await daemon
      .readFile(`${stateDirectory}/${path}`, { maxBytes: limits.bytes - bytes, signal })
      .catch((error: unknown) => {
        if (errorCode(error) === 'RequestEntityTooLarge') return undefined
        throw error
      })
    if (!content) return undefined
    bytes += content.length
    files.push({ path, content: Buffer.from(content).toString('base64') })
  }
  if (files.length === 0 || !hasSessions(adapter)) return undefined
  return record.write('session', asChunks(JSON.stringify({ files })), { signal })
}

/** Puts a kept session where the agent looks for it, in another sandbox. False where the record holds none. */
export async function restoreSession(place: SessionPlace): Promise<boolean> {
  const { daemon, adapter, record, stateDirectory, signal } = place
  const kept = await record.find('session')
  if (!kept) return false
  const chunks: Uint8Array[] = []
  for await (const chunk of record.read('session')) chunks.push(chunk)
  const session = sessionSchema.parse(JSON.parse(Buffer.concat(chunks).toString('utf8')))
  for (const { path, content } of session.files) {
    if (!isSessionPath(path, adapter.sessions?.paths ?? [])) continue
    const bytes = Buffer.from(content, 'base64')
    await daemon.writeFile(`${stateDirectory}/${path}`, bytes, { mode: '0600', mkdirs: true, signal })
  }
  return true
}

/** Whether a relative path lies at or below one of the adapter's, spelled without a detour. */
export function isSessionPath(path: string, roots: readonly string[]): boolean {
  const parts = path.split('/')
  if (path.includes('\0') || parts.some((part) => part === '' || part === '.' || part === '..')) return false
  return roots.some((root) => path === root || path.startsWith(`${root}/`))
}

/** Paths of plain files of the session, relative to the state directory; at most one more than `limit`. */
async function sessionFiles(
  { daemon, adapter, stateDirectory, signal }: SessionPlace,
  limit: number,
): Promise<string[]> {
  const roots = adapter.sessions?.paths ?? []
  const found: string[] = []
  for (const root of roots) {
    const info = await daemon.statFile(`${stateDirectory}/${root}`, { signal })
    if (info?.type === 'file') found.push(root)
    if (info?.type !== 'directory') continue
    for await (const entry of daemon.walk(`${stateDirectory}/${root}`, { signal })) {
      const path = `${root}/${entry.path}`
      if (entry.type === 'file' && isSessionPath(path, roots)) found.push(path)
      if (found.length > limit) return found
    }
  }
  return found
}

async function* asChunks(text: string): AsyncIterable<Uint8Array> {
  yield Buffer.from(text)
}

import { CorralError, type OpenSessionRequest, type SessionView, TasksClient } from '@corral/protocol'
import { signal } from '@preact/signals'

/** Calls go to where the pages come from, with the browser's session. */
const send: typeof fetch = (url, init) => fetch(url, { ...init, credentials: 'same-origin' })

export const api = new TasksClient({ baseUrl: '', fetch: send })

/** Undefined until it is known; null for a browser that is not signed in. */
export const session = signal<SessionView | null | undefined>(undefined)

export async function loadSession(): Promise<void> {
  try {
    session.value = await api.session()
  } catch (error) {
    if (codeOf(error) === 'Unauthorized') session.value = null
    else throw error
  }
}

export async function signIn(proof: OpenSessionRequest): Promise<void> {
  await api.openSession(proof)
  await loadSession()
}

export async function signOut(): Promise<void> {
  await api.closeSession()
  session.value = null
}

export const codeOf = (error: unknown): string | undefined => (error instanceof CorralError ? error.code : undefined)

/** A failure in words for people, with what to do next. */
export function wordsOf(error: unknown): { message: string; hint?: string | undefined } {
  if (error instanceof CorralError) return { message: sentence(error.message), hint: error.hint }
  return { message: error instanceof Error ? error.message : String(error) }
}

/** Messages of the API begin small: on a page they are sentences. */
export const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

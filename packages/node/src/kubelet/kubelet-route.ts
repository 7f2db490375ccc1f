import type { LogStreamOptions, PodRef } from '@corral/ports'

/** What an API server asks of a kubelet. */
export type KubeletRoute =
  | { kind: 'health' }
  | { kind: 'exec' | 'attach'; pod: PodRef; container: string }
  | { kind: 'portForward'; pod: PodRef }
  | { kind: 'logs'; pod: PodRef; container: string }

/** The route of a path, or undefined. Pods may carry their uid between name and container. */
export function kubeletRoute(path: string): KubeletRoute | undefined {
  const [verb, ...parts] = path.split('/').filter(Boolean).map(decode)
  if (parts.some((part) => part === undefined)) return undefined
  const words = parts as string[] // none is undefined, as checked
  switch (verb) {
    case 'healthz':
      return words.length === 0 ? { kind: 'health' } : undefined
    case 'exec':
    case 'attach':
      return containerRoute(verb, words)
    case 'containerLogs':
      return containerRoute('logs', words)
    case 'portForward': {
      const [namespace, name, uid] = words
      if (!namespace || !name || words.length > 3) return undefined
      return { kind: 'portForward', pod: { namespace, name, ...(uid ? { uid } : {}) } }
    }
    default:
      return undefined
  }
}

function containerRoute(kind: 'exec' | 'attach' | 'logs', words: readonly string[]): KubeletRoute | undefined {
  const [namespace, name, ...rest] = words
  const container = rest.at(-1)
  if (!namespace || !name || !container || rest.length > 2) return undefined
  const uid = rest.length === 2 ? rest[0] : undefined
  return { kind, container, pod: { namespace, name, ...(uid ? { uid } : {}) } }
}

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    // Malformed percent-encoding names nothing.
    return undefined
  }
}

/** The log options of a query; undefined where one of them is no number. */
export function logOptions(query: URLSearchParams): Omit<LogStreamOptions, 'container'> | undefined {
  const numbers: Partial<Record<'sinceSeconds' | 'tailLines' | 'limitBytes', number>> = {}
  for (const name of ['sinceSeconds', 'tailLines', 'limitBytes'] as const) {
    const value = query.get(name)
    if (value === null) continue
    if (!/^\d+$/.test(value)) return undefined
    numbers[name] = Number(value)
  }
  const flag = (name: string): boolean => query.get(name) === 'true' || query.get(name) === '1'
  const sinceTime = query.get('sinceTime')
  return {
    ...numbers,
    ...(sinceTime ? { sinceTime } : {}),
    follow: flag('follow'),
    previous: flag('previous'),
    timestamps: flag('timestamps'),
  }
}

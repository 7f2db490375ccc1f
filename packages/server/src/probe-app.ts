import type { Registry } from 'prom-client'

export interface ProbeOptions {
  /** Whether everything behind this process works. */
  isReady: () => boolean
  /** What is wrong with the disk, while something is. */
  diskProblem?: (() => string | undefined) | undefined
  /** Whether another process leads: this one has started, but agents and requests are that one's. */
  isStandingBy?: (() => boolean) | undefined
  registry: Registry
}

/**
 * Health and metrics for a kubelet and a Prometheus, which have no token of ours: for a port of its own that only the
 * cluster reaches. Nothing about a task is on it but figures.
 */
export function createProbeApp(options: ProbeOptions): (request: Request) => Promise<Response> {
  return async (request) => {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return text('only GET is answered here\n', 405, { allow: 'GET, HEAD' })
    switch (new URL(request.url).pathname) {
      case '/healthz':
        return text('ok', 200)
      case '/readyz': {
        if (!options.isReady()) return text('not ready', 503)
        if (options.isStandingBy?.()) return text('standing by: another process leads', 503)
        const problem = options.diskProblem?.()
        return problem === undefined ? text('ok', 200) : text(`DiskFull: ${problem}`, 503)
      }
      case '/startupz':
        return options.isReady() ? text('ok', 200) : text('not ready', 503)
      case '/metrics':
        return text(await options.registry.metrics(), 200, { 'content-type': options.registry.contentType })
      default:
        return text('this port has /healthz, /startupz, /readyz and /metrics\n', 404)
    }
  }
}

function text(body: string, status: number, headers: Record<string, string> = {}): Response {
  return new Response(body, { status, headers: { 'content-type': 'text/plain; charset=utf-8', ...headers } })
}

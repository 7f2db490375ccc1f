import { type Clock, systemClock } from '@corral/ports'
import type { Upstream } from '../ecosystem.js'
import { cratesUpstream } from './crates-upstream.js'
import { goUpstream } from './go-upstream.js'
import type { HostSettings } from './host-settings.js'
import { mavenUpstream } from './maven-upstream.js'
import { npmUpstream } from './npm-upstream.js'
import { pypiUpstream } from './pypi-upstream.js'

const readers: Readonly<Record<string, (host: HostSettings, fetcher: typeof fetch) => Promise<Upstream>>> = {
  npm: npmUpstream,
  pypi: pypiUpstream,
  go: goUpstream,
  crates: cratesUpstream,
  maven: mavenUpstream,
}

/**
 * The registries this machine's own clients use, read when they are first needed and again after `freshMs`: asking npm
 * or pip starts a program of a second. `overrides` are addresses the operator set for the mirror itself.
 */
export function hostUpstreams(options: {
  host: HostSettings
  overrides?: Readonly<Record<string, Upstream>>
  fetch?: typeof fetch
  clock?: Clock
  freshMs?: number
}): (ecosystem: string) => Promise<Upstream | undefined> {
  const clock = options.clock ?? systemClock
  const known = new Map<string, { at: number; upstream: Promise<Upstream> }>()
  return async (ecosystem) => {
    const override = options.overrides?.[ecosystem]
    const read = readers[ecosystem]
    if (override || !read) return override
    const now = clock.now().getTime()
    const former = known.get(ecosystem)
    if (former && now - former.at < (options.freshMs ?? 60_000)) return former.upstream
    const upstream = read(options.host, options.fetch ?? fetch)
    known.set(ecosystem, { at: now, upstream })
    upstream.catch(() => known.delete(ecosystem))
    return upstream
  }
}

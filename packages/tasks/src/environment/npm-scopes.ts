/** A scope of npm that has a registry of its own. */
export interface NpmScope {
  /** With its `@`. */
  scope: string
  registry: string
}

/**
 * Scopes that a project's `.npmrc` sends to the registry the platform's user has for them: those are asked through the mirror,
 * which adds the user's credentials. Another registry than the user's is the project's own wish, and has to be granted. Pure.
 */
export function scopesAtMirror(npmrc: string, known: readonly NpmScope[]): string[] {
  const own = npmrc.split('\n').flatMap((line) => {
    const [, scope = '', , registry = ''] =
      /^\s*(@[\w.~-]{1,100}):registry\s*=\s*(["']?)(\S{1,2000}?)\2\s*$/.exec(line) ?? []
    return scope ? [{ scope, registry }] : []
  })
  // Of several lines for one scope npm takes the last.
  const byScope = new Map(own.map(({ scope, registry }) => [scope, addressOf(registry)]))
  return known.flatMap(({ scope, registry }) =>
    byScope.has(scope) && byScope.get(scope) === addressOf(registry) ? [scope] : [],
  )
}

/** Undefined where it is none, or is made of variables. */
function addressOf(text: string): string | undefined {
  if (!URL.canParse(text) || text.includes('$')) return undefined
  const { origin, pathname } = new URL(text)
  return `${origin}${pathname.replace(/\/+$/, '')}`
}

/** A scope of npm that has a registry of its own. */
export interface NpmScope {
  /** With its `@`. */
  scope: string
  registry: string
}

/**
 * Scopes that a project's `.npmrc` files send to the registry the platform's user has for them: those are asked through the
 * mirror, which adds the user's credentials. Another registry than the user's is the project's own wish, and has to be granted;
 * so has a scope whose registry the parts of a project do not agree on, since what is set counts for all of them. Pure.
 */
export function scopesAtMirror(npmrcs: readonly string[], known: readonly NpmScope[]): string[] {
  const files = npmrcs.map(registriesByScope)
  return known.flatMap(({ scope, registry }) => {
    const named = files.flatMap((file) => (file.has(scope) ? [file.get(scope)] : []))
    return named.length > 0 && named.every((each) => each === addressOf(registry)) ? [scope] : []
  })
}

/** Of several lines for one scope npm takes the last. */
function registriesByScope(npmrc: string): Map<string, string | undefined> {
  const lines = npmrc.split('\n').flatMap((line) => {
    const [, scope = '', , registry = ''] =
      /^\s*(@[\w.~-]{1,100}):registry\s*=\s*(["']?)(\S{1,2000}?)\2\s*$/.exec(line) ?? []
    return scope ? [[scope, addressOf(registry)] as const] : []
  })
  return new Map(lines)
}

/** Undefined where it is none, or is made of variables. */
function addressOf(text: string): string | undefined {
  if (!URL.canParse(text) || text.includes('$')) return undefined
  const { origin, pathname } = new URL(text)
  return `${origin}${pathname.replace(/\/+$/, '')}`
}

/**
 * The address a submodule has: its own, or, where that begins with `./` or `../`, one beside its parent's, as git resolves
 * it: each `../` takes one part off the parent's address.
 */
export function submoduleUrl(parent: string, url: string): string {
  if (!/^\.\.?\//.test(url)) return url
  let base = parent.replace(/\/+$/, '')
  let rest = url
  for (;;) {
    if (rest.startsWith('./')) rest = rest.slice(2)
    else if (rest.startsWith('../')) {
      rest = rest.slice(3)
      base = withoutLast(base)
    } else break
  }
  return /:$/.test(base) ? `${base}${rest}` : `${base}/${rest}`
}

/** `https://h/a/b` → `https://h/a`, `git@h:a` → `git@h:`. */
function withoutLast(address: string): string {
  const slash = address.lastIndexOf('/')
  if (slash > 0 && address[slash - 1] !== '/') return address.slice(0, slash)
  const colon = address.lastIndexOf(':')
  return colon > 0 && slash < 0 ? address.slice(0, colon + 1) : address
}

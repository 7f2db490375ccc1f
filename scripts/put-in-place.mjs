import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Moves what was built in `fresh` to `place`, entry by entry in this order and then the rest. A file is replaced in one step:
 * a program that starts meanwhile finds the old one or the new one. What `fresh` does not have stays; `withdrawn` goes first.
 */
export function putInPlace(fresh, place, { withdrawn = [], order = [] } = {}) {
  mkdirSync(place, { recursive: true })
  for (const name of withdrawn) rmSync(join(place, name), { force: true })
  const entries = readdirSync(fresh, { withFileTypes: true })
  const rank = ({ name }) => (order.includes(name) ? order.indexOf(name) : order.length)
  for (const entry of entries.sort((a, b) => rank(a) - rank(b))) {
    const from = join(fresh, entry.name)
    const to = join(place, entry.name)
    if (!entry.isDirectory() || !existsSync(to)) renameSync(from, to)
    else replaceDirectory(from, to)
  }
  rmSync(fresh, { recursive: true, force: true })
}

/** A directory with something in it cannot be renamed over: the old one steps aside, and is gone for a moment. */
function replaceDirectory(from, to) {
  const aside = `${from}.old`
  rmSync(aside, { recursive: true, force: true })
  renameSync(to, aside)
  renameSync(from, to)
  rmSync(aside, { recursive: true, force: true })
}

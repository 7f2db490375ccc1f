/**
 * The name each path of a request is kept under: its last part where that is enough to tell them apart, else the whole
 * path with dashes. The same paths give the same names, so that a name leads back to its path.
 */
export function artifactNames(paths: readonly string[]): { path: string; name: string }[] {
  const taken = new Set<string>()
  const lastParts = paths.map(lastPart)
  return paths.map((path, index) => {
    const last = lastParts[index]!
    const isAlone = lastParts.filter((other) => other === last).length === 1
    const wanted = fitting(isAlone ? last : path.replaceAll('/', '-'))
    let name = wanted
    for (let number = 2; taken.has(name) || reserved.has(name); number++)
      name = `${number}-${wanted}`.slice(0, maxCharacters)
    taken.add(name)
    return { path, name }
  })
}

const maxCharacters = 100

/** What the platform itself keeps under. */
const reserved = new Set(['kept.bundle', 'left-out.tar', 'rejected.bundle', 'work-tree.tar'])

const lastPart = (path: string): string => path.split('/').at(-1) ?? path

/** Letters, digits, dots, dashes and underscores, with a letter or digit first. */
function fitting(text: string): string {
  const plain = text
    .replaceAll(/[^A-Za-z0-9._-]/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .replace(/\.partial$/, '-partial')
  return plain.slice(-maxCharacters).replace(/^[^A-Za-z0-9]+/, '') || 'file'
}

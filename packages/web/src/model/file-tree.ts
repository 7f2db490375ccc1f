/** One line of a tree of files: a folder, or a file by its place in the list it came from. */
export type TreeLine =
  | { readonly kind: 'folder'; readonly path: string; readonly name: string; readonly depth: number }
  | { readonly kind: 'file'; readonly index: number; readonly name: string; readonly depth: number }

interface Folder {
  readonly folders: Map<string, Folder>
  readonly files: { readonly name: string; readonly index: number }[]
}

/** Paths as a tree, folders before files, as lines to show. A folder with nothing but one folder is one line with it. */
export function fileTree(paths: readonly string[]): TreeLine[] {
  const root: Folder = { folders: new Map(), files: [] }
  for (const [index, path] of paths.entries()) {
    const parts = path.split('/')
    const name = parts.pop() ?? path
    let folder = root
    for (const part of parts) {
      const next = folder.folders.get(part) ?? { folders: new Map(), files: [] }
      folder.folders.set(part, next)
      folder = next
    }
    folder.files.push({ name, index })
  }
  return linesOf(root, '', 0)
}

function linesOf(folder: Folder, path: string, depth: number): TreeLine[] {
  const lines: TreeLine[] = []
  for (const [first, sub] of [...folder.folders].sort(([one], [other]) => one.localeCompare(other))) {
    let [name, inner] = [first, sub]
    for (;;) {
      const only = inner.files.length === 0 && inner.folders.size === 1 ? [...inner.folders][0] : undefined
      if (!only) break
      name = `${name}/${only[0]}`
      inner = only[1]
    }
    const full = path ? `${path}/${name}` : name
    lines.push({ kind: 'folder', path: full, name, depth }, ...linesOf(inner, full, depth + 1))
  }
  for (const { name, index } of folder.files) lines.push({ kind: 'file', index, name, depth })
  return lines
}

/** What tells one mutant from all others of a tree. Lines and columns count from 0, as Stryker's plugins see them. */
export function keyOf({ fileName, mutatorName, replacement, location: { start, end } }) {
  const place = `${start.line}:${start.column}-${end.line}:${end.column}`
  return `${fileName} ${place} ${mutatorName} ${replacement ?? ''}`
}

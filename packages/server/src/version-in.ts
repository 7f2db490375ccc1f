/** The version in an `If-Match`; undefined for any. What is no tag of ours matches nothing. */
export function versionIn(header: string | undefined): string | undefined {
  if (header === undefined || header.trim() === '*') return undefined
  return /^\s*(?:W\/)?"(.+)"\s*$/.exec(header)?.[1] ?? header.trim()
}

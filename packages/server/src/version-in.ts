/** The version in an `If-Match`; undefined for any. An ETag that this server did not make matches no version. */
export function versionIn(header: string | undefined): string | undefined {
  if (header === undefined || header.trim() === '*') return undefined
  return /^\s*(?:W\/)?"(.+)"\s*$/.exec(header)?.[1] ?? header.trim()
}

/** Ref → object, as `git ls-remote` lists them. */
export function refsIn(listing: string): Map<string, string> {
  return new Map([...listing.matchAll(/^([0-9a-f]{40,64})\t(\S+)$/gm)].map(([, oid, ref]) => [ref!, oid!]))
}

import { join } from 'node:path'

/** A file of Git LFS as git stores it. */
export interface LfsPointer {
  /** SHA-256 of the content. */
  oid: string
  sizeBytes: number
}

/** Sizes a pointer can have: the specification keeps it below 1024 bytes, and the shortest has three lines. */
export const pointerBytes = {
  mayBe: (sizeBytes: number): boolean => sizeBytes >= 120 && sizeBytes < 1024,
} as const

const shape =
  /^version https:\/\/(?:git-lfs\.github\.com\/spec\/v1|hawser\.github\.com\/spec\/v1)\n(?:ext-[^\n]+\n)*oid sha256:([0-9a-f]{64})\nsize (\d{1,15})\n$/

/** Where a store of Git LFS keeps the content with this hash. */
export function lfsObjectPath(store: string, oid: string): string {
  return join(store, oid.slice(0, 2), oid.slice(2, 4), oid)
}

/** Undefined for anything else than a pointer. */
export function parsePointer(text: string): LfsPointer | undefined {
  const match = shape.exec(text)
  return match ? { oid: match[1]!, sizeBytes: Number(match[2]) } : undefined
}

import { createHash } from 'node:crypto'
import type { RegistryReader } from './registry-reader.js'

/** A toolchain of a registry: its exact version, and how it gets into a directory. */
export interface FetchedToolchain {
  version: string
  /** The package it is. */
  source: string
  /** Downloads it, checks it against what the registry promises, and unpacks it. */
  unpack(into: string): Promise<void>
}

export type FetchToolchain = (wanted: string, registry: RegistryReader) => Promise<FetchedToolchain>

/** The newest of the versions that begin with what is wanted; releases only. Pure. */
export function newestOf(versions: readonly string[], wanted: string): string | undefined {
  const parts = (version: string): number[] => version.split('.').map(Number)
  return versions
    .filter((version) => /^\d+(\.\d+)*$/.test(version))
    .filter((version) => wanted === '' || version === wanted || version.startsWith(`${wanted}.`))
    .sort((a, b) => {
      const [left, right] = [parts(a), parts(b)]
      const index = left.findIndex((part, i) => part !== (right[i] ?? 0))
      return index < 0 ? right.length - left.length : (right[index] ?? 0) - (left[index] ?? 0)
    })[0]
}

export function digestOf(algorithm: string, content: Buffer): Buffer {
  return createHash(algorithm).update(content).digest()
}

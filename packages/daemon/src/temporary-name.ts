import { randomUUID } from 'node:crypto'

/** Under which a file is written beside its place, into which it is then moved. Watches do not tell of it. */
export function temporaryName(): string {
  return `.corral-${randomUUID()}`
}

export function isTemporaryName(name: string): boolean {
  return /^\.corral-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(name)
}

import { randomInt } from 'node:crypto'

/** Numbers that are given to one holder at a time; a number is reused as late as possible. */
export interface NumberPool {
  /** `isTaken` rules out numbers that are held elsewhere. */
  take(isTaken?: (value: number) => boolean): number
  /** Marks a number as held, for what an earlier process gave out. */
  hold(value: number): void
  release(value: number): void
}

export function numberPool(first: number, last: number, start: number = first): NumberPool {
  const held = new Map<number, number>()
  let next = start
  return {
    take(isTaken = () => false) {
      for (let tries = 0; tries <= last - first; tries++) {
        const candidate = next
        next = next === last ? first : next + 1
        if (held.has(candidate) || isTaken(candidate)) continue
        held.set(candidate, 1)
        return candidate
      }
      throw new RangeError(`no number is left between ${first} and ${last}`)
    },
    hold(value) {
      held.set(value, (held.get(value) ?? 0) + 1)
      if (value >= next && value < last) next = value + 1
    },
    release(value) {
      const count = (held.get(value) ?? 1) - 1
      if (count > 0) held.set(value, count)
      else held.delete(value)
    },
  }
}

/** Host uids of pods. */
export const firstHostUid = 200_000
const lastHostUid = 265_535

/**
 * Begins anywhere in the range: two nodes of one machine know nothing of each other, and ending a pod ends every
 * process of its user.
 */
export const hostUidPool = (start: number = randomInt(firstHostUid, lastHostUid)): NumberPool =>
  numberPool(firstHostUid, lastHostUid, start)

/** Addresses of 100.64.0.0/10, counted from 100.64.0.2. */
export const podAddressPool = (): NumberPool => numberPool(2, 2 ** 22 - 2)

const addressBase = ((100 << 24) | (64 << 16)) >>> 0

export function podAddress(index: number): string {
  const value = addressBase + index
  return [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255].join('.')
}

export function podAddressIndex(address: string): number {
  const value = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
  return value - addressBase
}

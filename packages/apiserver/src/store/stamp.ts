/**
 * Something that is known of one object and not of its copies. A hidden property instead of a WeakMap: with an entry
 * for every state of every object such a map costs each full garbage collection, and stops everything when it grows.
 */
export class Stamp<T> {
  private readonly key: symbol = Symbol('stamp')

  /** The object must not be frozen yet. */
  set(object: object, value: T): void {
    Object.defineProperty(object, this.key, { value, configurable: true })
  }

  get(object: object): T | undefined {
    return (object as Record<symbol, T | undefined>)[this.key]
  }
}

/**
 * Text made of objects lately, so that the journal, the answer and every watcher share one piece of work. What has not
 * been asked for since some millions of characters is forgotten: kept for every object it would be most of the memory.
 * Long lists are not worth the place they would take from others.
 */
export class RecentText<K extends object> {
  private recent = new Map<K, string>()
  private older = new Map<K, string>()
  private size = 0

  constructor(private readonly maxLength: number) {}

  /** The text of this key, made now unless it is remembered. */
  of(key: K, make: (key: K) => string): string {
    const known = this.recent.get(key)
    if (known !== undefined) return known
    const text = this.older.get(key) ?? make(key)
    if (text.length > this.maxLength / 16) return text
    this.recent.set(key, text)
    this.size += text.length
    if (this.size > this.maxLength) {
      this.older = this.recent
      this.recent = new Map()
      this.size = 0
    }
    return text
  }

  find(key: K): string | undefined {
    return this.recent.get(key) ?? this.older.get(key)
  }
}

const cache = new RecentText<object>(4 * 1024 * 1024)
const toText = (object: object): string => JSON.stringify(object)

/** The object as JSON, seldom made twice. Only for frozen objects: a later change would not be seen. */
export function jsonText(object: object): string {
  return cache.of(object, toText)
}

/** About the size of the object's JSON: close enough for a limit. */
export function sizeInBytes(object: object): number {
  return cache.find(object)?.length ?? measure(object)
}

function measure(value: unknown): number {
  if (typeof value === 'string') return value.length + 2
  if (typeof value !== 'object' || value === null) return 5
  let size = 2
  if (Array.isArray(value)) for (const item of value) size += measure(item) + 1
  else for (const key in value) size += key.length + 4 + measure((value as Record<string, unknown>)[key])
  return size
}

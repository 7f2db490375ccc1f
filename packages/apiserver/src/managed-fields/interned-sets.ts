import { type FieldSet, memberSet, type SetOperation, sortSet, subtractSets, unionSets } from './field-set.js'

/**
 * Objects of one kind are written in a few ways only, so the same sets come again and again. One frozen, sorted object
 * stands for each, and what has been worked out for two of them once is not worked out again.
 */
const byText = new Map<string, FieldSet>()
const interned = new WeakSet<FieldSet>([memberSet])

/** Enough for every way of writing that recurs; names made up per object must not pile up. */
const maxSets = 4096
const maxTextLength = 16_384

/** Whether the set is one of ours: frozen and in order. */
export function isInterned(set: FieldSet): boolean {
  return interned.has(set)
}

/** Whether its keys are in order throughout. */
export function isOrderedSet(set: FieldSet): boolean {
  return orderedSet(set) === set
}

/** The set with its keys in order. */
export function orderedSet(set: FieldSet): FieldSet {
  return sortSet(set, isInterned)
}

/** The one object that stands for this set, in order; where keeping it is not worth it, a set whose parts are such. */
export function internSet(set: FieldSet): FieldSet {
  if (interned.has(set)) return set
  if (isOneOfAKind(set)) return internParts(set)
  const text = JSON.stringify(set)
  const known = byText.get(text)
  if (known) return known
  const sorted = sortSet(set)
  if (text.length > maxTextLength) return sorted
  if (byText.size >= maxSets) byText.clear()
  const sortedText = sorted === set ? text : JSON.stringify(sorted)
  const one = byText.get(sortedText) ?? freezeSet(sorted)
  byText.set(sortedText, one)
  byText.set(text, one)
  return one
}

/** Owners are listed by their uid, so a set that names one is hardly ever met again. */
function isOneOfAKind(set: FieldSet): boolean {
  if (set['f:ownerReferences'] !== undefined || set['f:metadata']?.['f:ownerReferences'] !== undefined) return true
  for (const key in set) return key.startsWith('k:{"uid":')
  return false
}

function internParts(set: FieldSet): FieldSet {
  const parts: Record<string, FieldSet> = {}
  for (const key in set) parts[key] = internSet(set[key]!)
  return parts
}

function freezeSet(set: FieldSet): FieldSet {
  interned.add(set)
  return freezeDeep(set)
}

function freezeDeep(set: FieldSet): FieldSet {
  if (Object.isFrozen(set)) return set
  for (const key in set) freezeDeep(set[key]!)
  return Object.freeze(set)
}

/** Remembers the results of an operation on interned sets, and on those that are parts of others. */
function remembering(operation: typeof unionSets): SetOperation {
  const results = new WeakMap<FieldSet, WeakMap<FieldSet, FieldSet | null>>()
  const remembered: SetOperation = (a, b) => {
    if (!a || !b || !interned.has(a) || !interned.has(b)) {
      const result = operation(a, b, remembered)
      // What is one of a kind was put together from parts that are interned.
      return !result || result === a || result === b || isOneOfAKind(result) ? result : internSet(result)
    }
    let ofA = results.get(a)
    if (!ofA) {
      ofA = new WeakMap()
      results.set(a, ofA)
    }
    const known = ofA.get(b)
    if (known !== undefined) return known ?? undefined
    const result = intern(operation(a, b, remembered))
    ofA.set(b, result ?? null)
    return result
  }
  return remembered
}

function intern(set: FieldSet | undefined): FieldSet | undefined {
  return set && internSet(set)
}

/** `unionSets`, `subtractSets` of interned sets. */
export const unionInterned: SetOperation = remembering(unionSets)
export const subtractInterned: SetOperation = remembering(subtractSets)

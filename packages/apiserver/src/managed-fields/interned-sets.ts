import { type FieldSet, sortSet, subtractSets, unionSets } from './field-set.js'

/**
 * Objects of one kind are written in a few ways only, so the same sets come again and again. One frozen, sorted object
 * stands for each, and what has been worked out for two of them once is not worked out again.
 */
const byText = new Map<string, FieldSet>()
const interned = new WeakSet<FieldSet>()

/** Enough for every way of writing that recurs; names made up per object must not pile up. */
const maxSets = 4096
const maxTextLength = 16_384

/** Whether the set is one of ours: frozen and in order. */
export function isInterned(set: FieldSet): boolean {
  return interned.has(set)
}

/** Whether its keys are in order throughout. */
export function isOrderedSet(set: FieldSet): boolean {
  return interned.has(set) || sortSet(set) === set
}

/** The set with its keys in order. */
export function orderedSet(set: FieldSet): FieldSet {
  return interned.has(set) ? set : sortSet(set)
}

/** The one object that stands for this set, in order, or the set itself where keeping it is not worth it. */
export function internSet(set: FieldSet): FieldSet {
  if (isOneOfAKind(set) || interned.has(set)) return set
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
  return set['f:metadata']?.['f:ownerReferences'] !== undefined
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

type Operation = (a: FieldSet | undefined, b: FieldSet | undefined) => FieldSet | undefined

/** Remembers the results of an operation on interned sets. */
function remembering(operation: Operation): Operation {
  const results = new WeakMap<FieldSet, WeakMap<FieldSet, FieldSet | null>>()
  return (a, b) => {
    if (!a || !b || !interned.has(a) || !interned.has(b)) return intern(operation(a, b))
    let ofA = results.get(a)
    if (!ofA) {
      ofA = new WeakMap()
      results.set(a, ofA)
    }
    const known = ofA.get(b)
    if (known !== undefined) return known ?? undefined
    const result = intern(operation(a, b))
    ofA.set(b, result ?? null)
    return result
  }
}

function intern(set: FieldSet | undefined): FieldSet | undefined {
  return set && internSet(set)
}

/** `unionSets`, `subtractSets` of interned sets. */
export const unionInterned: Operation = remembering(unionSets)
export const subtractInterned: Operation = remembering(subtractSets)

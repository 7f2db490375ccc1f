/**
 * What the node does with a field of a PodSpec:
 * honoured, as Kubernetes describes it;
 * inert, because it has no meaning on one machine and leaving it out takes nothing away from the pod;
 * refused, because running the pod without it would not be what was asked for.
 */
export type FieldClass =
  | { class: 'honoured' }
  | { class: 'inert'; reason: string }
  | { class: 'refused'; reason: string; allows: (value: unknown) => boolean }

export const honoured: FieldClass = { class: 'honoured' }

export const inert = (reason: string): FieldClass => ({ class: 'inert', reason })

/** Values that ask for nothing (false, 0, empty) and those that `allows` names pass. */
export const refused = (reason: string, allows: (value: unknown) => boolean = () => false): FieldClass => ({
  class: 'refused',
  reason,
  allows: (value) => asksForNothing(value) || allows(value),
})

export const oneOf =
  (...values: readonly unknown[]): ((value: unknown) => boolean) =>
  (value) =>
    values.includes(value)

/** An object with no other members than these. */
export const hasOnly =
  (...names: readonly string[]): ((value: unknown) => boolean) =>
  (value) =>
    typeof value === 'object' && value !== null && Object.keys(value).every((name) => names.includes(name))

/** The same class for several fields. */
export function all<K extends string>(names: readonly K[], fieldClass: FieldClass): Record<K, FieldClass> {
  return Object.fromEntries(names.map((name) => [name, fieldClass])) as Record<K, FieldClass> // every name is a key
}

function asksForNothing(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === 0 || value === '') return true
  return typeof value === 'object' && Object.keys(value).length === 0
}

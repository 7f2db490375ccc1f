/** A place in the values, what stands there wrongly, and what the schema says where. */
export interface WrongType {
  readonly path: readonly string[]
  readonly value: unknown
}

const samples: readonly unknown[] = ['text', 7, true, [1], { key: 'x' }]

/** Every value of the chart with something of another type in its place, in an order that a seed decides. */
export function wrongTypes(values: object, seed: number): WrongType[] {
  const found = placesOf(values, []).flatMap(({ path, value }) =>
    samples
      .filter((sample) => typeOf(sample) !== typeOf(value) && !isQuantity(path, sample))
      .map((sample) => ({ path, value: sample })),
  )
  let state = seed
  const next = (): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return state
  }
  return found
    .map((each) => ({ each, order: next() }))
    .sort((a, b) => a.order - b.order)
    .map(({ each }) => each)
}

/** The values with that one place changed. */
export function valuesWith({ path, value }: WrongType): object {
  return path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as object
}

/** Kubernetes takes a whole number for a quantity. */
function isQuantity(path: readonly string[], sample: unknown): boolean {
  return typeof sample === 'number' && path.slice(0, -1).some((key) => ['requests', 'limits', 'hard'].includes(key))
}

function placesOf(value: object, path: readonly string[]): { path: string[]; value: unknown }[] {
  return Object.entries(value).flatMap(([key, inner]) => {
    const here = { path: [...path, key], value: inner as unknown }
    const isOpen = typeOf(inner) === 'object' && Object.keys(inner as object).length > 0
    return isOpen ? [here, ...placesOf(inner as object, here.path)] : [here]
  })
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return 'array'
  return value === null ? 'null' : typeof value
}

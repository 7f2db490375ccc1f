import type { Scene } from './scene.js'

/** Flags that a group of scenarios needs; scenarios with the same flags share one manager. */
export type Flags = readonly string[]

/**
 * Something that users do through the API and what the controllers make of it. `run` checks what the reference says and
 * records what it saw with `scene.observe`; what upstream's controller showed is what ours is compared with.
 */
export interface Scenario {
  /** Numbers of the reference's scenarios this one covers. */
  readonly number: string
  readonly title: string
  readonly flags: Flags
  readonly timeoutMs: number
  run(scene: Scene): Promise<void>
}

export function scenario(
  number: string | number,
  title: string,
  run: (scene: Scene) => Promise<void>,
  options: { flags?: Flags; timeoutMs?: number } = {},
): Scenario {
  return { number: String(number), title, run, flags: options.flags ?? [], timeoutMs: options.timeoutMs ?? 900_000 }
}

import type { MavenRepository } from './maven-repository.js'

/** What the mirror may ask of the machine it runs on. Nothing is written, and only the package clients themselves are run. */
export interface HostSettings {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly home: string
  /** `undefined` where there is no such file or it cannot be read. */
  readFile(path: string): Promise<string | undefined>
  /** Standard output, or `undefined` where the program is missing or fails. Rejects where it does not answer in time. */
  run(argv: readonly [string, ...string[]]): Promise<string | undefined>
  /** The sparse index that Cargo asks without any settings. */
  cargoDefaultIndex(): Promise<string | undefined>
  /** The repository that Maven asks, as its settings are. */
  mavenRepository(): Promise<MavenRepository | undefined>
}

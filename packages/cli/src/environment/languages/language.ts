/** The text of a file at the root; undefined where it is not there. */
export type Read = (file: string) => string | undefined

export interface Rule {
  /** The first of them that is there decides. */
  files: readonly string[]
  /** Where one name stands for several formats: whether the file is of this one. */
  isOf?: (content: string) => boolean
  /** Whether other files let the rule count. */
  isFor?: (read: Read) => boolean
  setup: readonly string[] | ((read: Read) => string[])
  path?: string
  /** Where tests are run, and compiled, otherwise than the language's are. */
  check?: Check
  ahead?: string
}

export interface Check {
  name: string
  run: string
}

export interface Language {
  rules: readonly Rule[]
  /** `otherwise` where neither one of the files nor `.tool-versions` asks for a version. */
  tools?: { files: readonly string[]; otherwise: Readonly<Record<string, string>> }
  check: Check
  /** Compiles what the check would, for every task to find it done. */
  ahead?: string
  hasTests(read: Read): boolean
}

export const always = (): boolean => true

/** One file of vitest's JSON report, as far as a second try needs it. */
export interface FileResult {
  name: string
  status: string
  assertionResults: { fullName: string; status: string }[]
}

/** The files with a test that failed, and those that failed to load. */
export function failedFiles(results: readonly FileResult[]): string[] {
  return results
    .filter(
      ({ status, assertionResults }) =>
        status === 'failed' || assertionResults.some((test) => test.status === 'failed'),
    )
    .map(({ name }) => name)
}

/** The first run's results, with those of the second try in place of each file that had one. */
export function withSecondTry(first: readonly FileResult[], second: readonly FileResult[]): FileResult[] {
  const again = new Map(second.map((result) => [result.name, result]))
  return first.map((result) => again.get(result.name) ?? result)
}

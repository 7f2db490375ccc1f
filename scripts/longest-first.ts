import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Suites that run for long. Vitest begins with the largest files until it knows how long each took, and some of these
 * are a few lines that name a suite: begun last they ran alone for a tenth of the whole time.
 */
const long: readonly RegExp[] = [
  /^conformance\//,
  /^tests\/(repositories|platform|faults)\//,
  /^packages\/node\/src\/isolation\/isolation\.test/,
  /^packages\/mirror\/src\/clients\.test/,
  /^tests\/workspace\/packed-packages\.test/,
]

/** The order of Vitest, with long suites in front. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isLong = ({ moduleId }: TestSpecification): boolean => {
      const path = relative(this.ctx.config.root, moduleId)
      return long.some((each) => each.test(path))
    }
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

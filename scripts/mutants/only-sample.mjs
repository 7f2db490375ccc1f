// A Stryker plugin: refuses the mutants that are not in the sample before a test runs. Refused ones are not valid, so that they
// are in no score. Mutants that no test reaches never come here: the counts are made from the report, see ./score.ts.
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { declareFactoryPlugin, PluginKind } from '@stryker-mutator/api/plugin'
import { keyOf } from './mutant-key.mjs'

export const strykerPlugins = [declareFactoryPlugin(PluginKind.Checker, 'only-sample', onlySample)]

onlySample.inject = []
function onlySample() {
  const { root, keys } = JSON.parse(readFileSync(process.env.CORRAL_MUTANT_SAMPLE ?? '', 'utf8'))
  const isInSample = new Set(keys)
  return {
    init: async () => undefined,
    // One group, so that thousands of mutants are not a message each.
    group: async (mutants) => [mutants.map(({ id }) => id)],
    check: async (mutants) =>
      Object.fromEntries(
        mutants.map((mutant) => {
          const key = keyOf({ ...mutant, fileName: relative(root, mutant.fileName) })
          const status = isInSample.has(key) ? 'passed' : 'compileError'
          return [mutant.id, status === 'passed' ? { status } : { status, reason: 'not in the sample' }]
        }),
      ),
  }
}

import { describe } from 'vitest'
import { describeIsolation } from './isolation.test-suite.js'
import { compiledSupervisor, hasBubblewrap } from './workbench.test-suite.js'

const hasCompiler = compiledSupervisor() !== undefined

describe.skipIf(!hasBubblewrap || !hasCompiler)('isolation (bubblewrap and a C compiler installed)', () => {
  describeIsolation('bubblewrap + compiled supervisor')
})
describe.skipIf(!hasBubblewrap)('isolation (bubblewrap installed)', () => {
  describeIsolation('bubblewrap + Node supervisor')
})
describe.skipIf(!hasCompiler)('isolation (a C compiler installed)', () => {
  describeIsolation('process')
})

import { agentAdapters, agentCapabilityNames } from '@corral/agents'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { tableScripts } from './agent-scripts.js'
import { type AgentTable, proofs, refusals, startAgentTable } from './agent-table.js'

let table: AgentTable
beforeAll(async () => {
  table = await startAgentTable()
})
afterAll(() => table?.[Symbol.asyncDispose]())

/** Every cell of the table in docs/agents.md: it does what it says, with the real program, or is refused with its reason. */
for (const { name, capabilities } of agentAdapters.values())
  describe(name, () => {
    const script = tableScripts.find(({ agent }) => agent === name)!
    for (const capability of agentCapabilityNames) {
      const cell = capabilities[capability]
      it(`${capability}: ${cell === true ? 'yes' : `no: ${cell.no}`}`, async () => {
        if (cell === true) await proofs[capability](table, script)
        else await refusals[capability](table, script, cell.no)
      })
    }
  })

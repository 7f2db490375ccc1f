import { expect, it } from 'vitest'
import { limitsFinding } from './doctor-checks.js'

it.each([
  { limits: 'enforced', state: 'ok', remedy: undefined },
  { limits: 'partial', state: 'warn', remedy: expect.stringContaining('Delegate=yes') },
  { limits: 'none', state: 'warn', remedy: expect.stringContaining('Delegate=yes') },
] as const)('limits that are $limits are a finding of state $state', ({ limits, state, remedy }) => {
  const finding = limitsFinding('bubblewrap', limits)
  expect(finding).toMatchObject({ check: 'isolation', state, detail: `bubblewrap, limits ${limits}` })
  expect(finding.remedy).toEqual(remedy)
})

import { describe, expect, it } from 'vitest'
import type { NetworkReport } from '../../isolation/isolation.js'
import { Refusals } from './refusals.js'

function recorded() {
  const reports: NetworkReport[] = []
  const now = () => new Date('2030-01-01T00:00:00Z')
  return {
    reports,
    refusals: new Refusals({ podUid: 'p', now, everyMs: 5, onChange: (report) => reports.push(report) }),
  }
}

describe('Refusals', () => {
  it('counts what is asked for again, and tells of it in one go', async () => {
    const { reports, refusals } = recorded()
    for (let i = 0; i < 1000; i++) refusals.host('a.example', 'NotAllowed')
    refusals.host('b.example', 'Unresolved', 443)
    expect(reports).toHaveLength(1)
    await expect.poll(() => reports.length).toBe(2)
    expect(reports.at(-1)?.refused).toMatchObject([
      { host: 'a.example', count: 1000 },
      { host: 'b.example', port: 443, reason: 'Unresolved', count: 1 },
    ])
  })

  it('keeps a short list however many names are asked for', () => {
    const { refusals } = recorded()
    for (let i = 0; i < 10_000; i++) refusals.host(`n${i}.example`, 'NotAllowed')
    expect(refusals.report?.refused).toHaveLength(32)
    expect(refusals.report?.otherHosts).toBe(9_968)
    refusals.close()
  })

  it('leaves out what a resolver adds to a name while it searches', () => {
    const { refusals } = recorded()
    refusals.host('a.example.corral.svc.cluster.local', 'NotAllowed')
    expect(refusals.report).toBeUndefined()
  })

  it('counts connections over a limit', () => {
    const { refusals } = recorded()
    refusals.connection({ of: 'pod', connections: 8 })
    refusals.connection({ of: 'pod', connections: 8 })
    expect(refusals.report).toMatchObject({ refusedConnections: 2, connectionLimit: { of: 'pod', connections: 8 } })
    refusals.close()
  })
})

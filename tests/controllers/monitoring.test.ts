import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promTaskGauges, promTaskMetrics } from '@corral/tasks'
import { load } from 'js-yaml'
import { Registry } from 'prom-client'
import { expect, it } from 'vitest'
import { startTestCluster } from './cluster.js'

const deploy = join(import.meta.dirname, '../../deploy/monitoring')
const documents = join(import.meta.dirname, '../../docs/cluster.md')
const rules = load(readFileSync(join(deploy, 'corral-rules.yaml'), 'utf8')) as {
  groups: { rules: { record?: string; alert?: string; expr: string; annotations?: { runbook: string } }[] }[]
}
const dashboard = JSON.parse(readFileSync(join(deploy, 'corral-dashboard.json'), 'utf8')) as {
  panels: { title: string; targets: { expr: string }[] }[]
}
const allRules = rules.groups.flatMap((group) => group.rules)
const expressions = [
  ...allRules.map(({ expr }) => expr),
  ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
]

it('S4-P3.4: every figure of dashboard and rules is one that server or controllers serve', async () => {
  const registry = new Registry()
  promTaskMetrics(registry)
  promTaskGauges(registry, { list: () => [], now: () => new Date() })
  await using cluster = await startTestCluster()
  const manager = await cluster.startManager()
  const text = `${await registry.metrics()}\n${await manager.metrics.metrics()}`
  const served = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name))
  const named = expressions.flatMap((expr) => expr.match(/\b(corral|agent_sandbox)[a-z_]*\b(?!:)/g) ?? [])
  const wanted = [...new Set(named)].filter((name) => name !== 'corral').map((name) => name.replace(/_bucket$/, ''))
  expect(wanted.length).toBeGreaterThan(8)
  expect(wanted.filter((name) => !served.has(name))).toEqual([])
})

it('every recorded figure that is used is recorded', () => {
  const used = expressions.flatMap((expr) => expr.match(/\bcorral:[a-z0-9_:]+/g) ?? [])
  const recorded = allRules.flatMap(({ record }) => record ?? [])
  expect([...new Set(used)].filter((name) => !recorded.includes(name))).toEqual([])
})

it('S4-N4d: every alert has a runbook in the documents', () => {
  const text = readFileSync(documents, 'utf8')
  const alerts = allRules.flatMap(({ alert, annotations }) => (alert ? [{ alert, runbook: annotations?.runbook }] : []))
  expect(alerts.length).toBeGreaterThan(4)
  for (const { alert, runbook } of alerts) {
    expect(runbook).toBe(`docs/cluster.md#${alert.toLowerCase()}`)
    expect(text).toContain(`### ${alert}\n`)
  }
})

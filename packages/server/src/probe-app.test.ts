import { Counter, Registry } from 'prom-client'
import { expect, it } from 'vitest'
import { createProbeApp } from './probe-app.js'

const registry = new Registry()
new Counter({ name: 'corral_things_total', help: 'Things', registers: [registry] }).inc(3)
let isReady = true
let problem: string | undefined
let isStandingBy = false
const app = createProbeApp({
  isReady: () => isReady,
  diskProblem: () => problem,
  isStandingBy: () => isStandingBy,
  registry,
})
const ask = async (path: string, method = 'GET'): Promise<[number, string]> => {
  const response = await app(new Request(`http://probe${path}`, { method }))
  return [response.status, await response.text()]
}

it('a Prometheus without a token reads the metrics', async () => {
  const [status, text] = await ask('/metrics')
  expect(status).toBe(200)
  expect(text).toContain('corral_things_total 3')
})

it('a kubelet sees whether the process lives and whether it is ready', async () => {
  expect(await ask('/healthz')).toEqual([200, 'ok'])
  expect(await ask('/readyz')).toEqual([200, 'ok'])
  isReady = false
  expect(await ask('/readyz')).toEqual([503, 'not ready'])
  isReady = true
  problem = 'no room on /var'
  expect(await ask('/readyz')).toEqual([503, 'DiskFull: no room on /var'])
  problem = undefined
  expect(await ask('/healthz')).toEqual([200, 'ok'])
})

it('who stands by for another process has started, and gets no requests', async () => {
  isReady = false
  expect(await ask('/startupz')).toEqual([503, 'not ready'])
  isReady = true
  isStandingBy = true
  expect(await ask('/startupz')).toEqual([200, 'ok'])
  expect(await ask('/readyz')).toEqual([503, 'standing by: another process leads'])
  isStandingBy = false
  expect(await ask('/readyz')).toEqual([200, 'ok'])
})

it('nothing else of the API is on that port', async () => {
  for (const path of ['/tasks', '/', '/openapi.json']) expect((await ask(path))[0]).toBe(404)
  for (const method of ['POST', 'PUT', 'DELETE'])
    expect(await ask('/metrics', method)).toEqual([405, 'only GET is answered here\n'])
  expect((await ask('/healthz', 'HEAD'))[0]).toBe(200)
})

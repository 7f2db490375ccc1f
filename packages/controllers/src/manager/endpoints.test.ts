import { X509Certificate } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { gunzipSync } from 'node:zlib'
import { silentLogger, systemClock } from '@corral/ports'
import { Counter, Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { type Endpoints, startEndpoints } from './endpoints.js'
import { frameworkMetrics } from './framework-metrics.js'
import { readLabelDomains } from './label-domains.js'
import type { EndpointOptions } from './options.js'
import { selfSignedCertificate } from './self-signed.js'

type Pair = ReturnType<typeof selfSignedCertificate>

/** What a client is shown, as PEM. */
function servedCertificate(port: number | undefined): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: port ?? 0, rejectUnauthorized: false }, () => {
      resolve(new X509Certificate(socket.getPeerCertificate().raw).toString())
      socket.destroy()
    }).on('error', reject)
  })
}

async function open(
  change: Partial<EndpointOptions> = {},
  onCertificate: (error?: unknown) => void = () => {},
): Promise<Endpoints> {
  const metrics = new Registry()
  new Counter({ name: 'things_total', help: 'things', registers: [metrics] }).inc(3)
  const options = {
    metricsAddress: '127.0.0.1:0',
    healthAddress: '127.0.0.1:0',
    pprof: false,
    pprofDebug: false,
    ...change,
  }
  return startEndpoints({ options, metrics, clock: systemClock, log: silentLogger, onCertificate })
}

describe('endpoints of the manager', () => {
  it.each([
    { path: '/healthz', status: 200, text: 'ok' },
    { path: '/readyz', status: 200, text: 'ok' },
    { path: '/other', status: 404, text: '404 page not found\n' },
  ])('S3-U12: health at $path answers $status', async ({ path, status, text }) => {
    const endpoints = await open()
    try {
      const response = await fetch(`http://127.0.0.1:${endpoints.healthPort}${path}`)
      expect([response.status, await response.text()]).toEqual([status, text])
    } finally {
      await endpoints.stop()
    }
  })

  it('S3-U8: metrics are served, and profiles only when asked for', async () => {
    const endpoints = await open()
    try {
      const base = `http://127.0.0.1:${endpoints.metricsPort}`
      expect(await (await fetch(`${base}/metrics`)).text()).toContain('things_total 3')
      expect((await fetch(`${base}/debug/pprof/profile`)).status).toBe(404)
    } finally {
      await endpoints.stop()
    }
  })

  it('a CPU profile comes in pprof form, and what Node has not is refused with the reason', async () => {
    const endpoints = await open({ pprof: true, pprofDebug: true })
    try {
      const base = `http://127.0.0.1:${endpoints.metricsPort}`
      const response = await fetch(`${base}/debug/pprof/profile?seconds=0.05`)
      const profile = gunzipSync(Buffer.from(await response.arrayBuffer()))
      expect(profile.includes('nanoseconds')).toBe(true)
      expect(profile[0]).toBe(0x0a)
      const heap = await fetch(`${base}/debug/pprof/heap`)
      expect([heap.status, await heap.text()]).toEqual([404, expect.stringContaining('does not exist in Node.js')])
    } finally {
      await endpoints.stop()
    }
  })

  it('metrics over TLS work with a certificate made at start', async () => {
    const endpoints = await open({ metricsTls: {} })
    try {
      const options = {
        host: '127.0.0.1',
        port: endpoints.metricsPort,
        path: '/metrics',
        rejectUnauthorized: false,
        agent: false,
      }
      const status = await new Promise((resolve, reject) => {
        request(options, (response) => resolve(response.resume().statusCode))
          .on('error', reject)
          .end()
      })
      expect(status).toBe(200)
    } finally {
      await endpoints.stop()
    }
  })

  it('metrics over TLS follow their certificate files, and keep the pair before one that cannot be used', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'certificate-'))
    const write = async ({ cert, key }: { cert: string; key: string }): Promise<void> => {
      await writeFile(join(directory, 'tls.crt'), cert)
      await writeFile(join(directory, 'tls.key'), key)
    }
    const [first, second] = [0, 1].map(() => selfSignedCertificate(new Date())) as [Pair, Pair]
    const metrics = new Registry()
    const framework = frameworkMetrics(metrics)
    const count = async (name: string): Promise<number> =>
      (await metrics.getSingleMetric(`certwatcher_read_certificate_${name}`)?.get())?.values[0]?.value ?? -1
    await write(first)
    const endpoints = await open({ metricsTls: { certDir: directory } }, framework.certificateRead)
    try {
      expect(await servedCertificate(endpoints.metricsPort)).toBe(first.cert)
      expect([await count('total'), await count('errors_total')]).toEqual([1, 0])
      await writeFile(join(directory, 'tls.key'), 'half a ke')
      await expect.poll(() => count('errors_total')).toBeGreaterThan(0)
      expect(await servedCertificate(endpoints.metricsPort)).toBe(first.cert)
      await write(second)
      await expect.poll(() => servedCertificate(endpoints.metricsPort)).toBe(second.cert)
    } finally {
      await endpoints.stop()
      await rm(directory, { recursive: true })
    }
  })

  it('a certificate that is not there ends the start', async () => {
    await expect(open({ metricsTls: { certDir: '/nonexistent' } })).rejects.toMatchObject({ code: 'ENOENT' })
  })

  it('the address 0 opens nothing, and a taken one is an error', async () => {
    const endpoints = await open({ metricsAddress: '0' })
    expect(endpoints.metricsPort).toBeUndefined()
    await expect(open({ healthAddress: `127.0.0.1:${endpoints.healthPort}` })).rejects.toMatchObject({
      code: 'EADDRINUSE',
    })
    await endpoints.stop()
  })
})

describe('label domains', () => {
  it('come from the file, or are the default', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'label-domains-'))
    try {
      const file = join(directory, 'allowed')
      expect(await readLabelDomains(file)).toEqual(['sandbox.users.io'])
      await writeFile(file, ' \n')
      expect(await readLabelDomains(file)).toEqual(['sandbox.users.io'])
      await writeFile(file, 'A.com, b.org\r\nc.net\n')
      expect(await readLabelDomains(file)).toEqual(['a.com', 'b.org', 'c.net'])
      await expect(readLabelDomains(directory)).rejects.toThrow('EISDIR')
    } finally {
      await rm(directory, { recursive: true })
    }
  })
})

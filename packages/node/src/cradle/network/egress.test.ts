import { createServer, type Server } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Cell } from '../../isolation/isolation.js'
import {
  compiledSupervisor,
  hasBubblewrap,
  openWorkbench,
  type Variant,
  type Workbench,
} from '../../isolation/workbench.test-suite.js'

const variants: { variant: Variant; isHere: boolean }[] = [
  { variant: 'bubblewrap + compiled supervisor', isHere: hasBubblewrap && compiledSupervisor() !== undefined },
  { variant: 'bubblewrap + Node supervisor', isHere: hasBubblewrap },
]

describe.each(variants)('egress ($variant)', ({ variant, isHere }) => {
  describe.skipIf(!isHere)('with bubblewrap installed', () => {
    let bench: Workbench
    let server: Server
    let port: number
    let open: Cell
    let closed: Cell

    beforeAll(async () => {
      bench = openWorkbench(variant)
      server = createServer((request, response) => response.end(`served ${request.headers.host}`))
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      port = (server.address() as { port: number }).port
      open = await bench.start('exec sleep 600', {
        pod: {
          services: [
            { names: ['corral-broker', 'corral-broker.corral'], port: 8787, target: { host: '127.0.0.1', port } },
          ],
          egress: [
            { host: '127.0.0.1', port },
            { host: '*.example.org', port: 443 },
            { host: 'localhost.example.net', port },
          ],
        },
      })
      closed = await bench.start('exec sleep 600')
    })
    afterAll(async () => {
      server.close()
      await bench[Symbol.asyncDispose]()
    })

    const fetching = (url: string): string =>
      `node -e 'fetch("${url}").then(r=>r.text()).then(t=>console.log(t),e=>{console.log(e.cause?.code);process.exit(1)})'`
    const resolving = (name: string, resolver = '127.0.0.1'): string =>
      `node -e 'const r=new (require("dns").promises.Resolver)();r.setServers(["${resolver}"]);r.resolve4("${name}").then(a=>console.log(a[0]),e=>console.log(e.code))'`

    it('carries a service’s name and port to where the platform says, for unmodified programs', async () => {
      expect(await bench.run(open, fetching('http://corral-broker:8787/'))).toMatchObject({
        stdout: 'served corral-broker:8787\n',
      })
      expect((await bench.run(open, fetching('http://corral-broker.corral:8787/'))).exitCode).toBe(0)
    })

    it('carries an address the operator has written', async () => {
      expect((await bench.run(open, fetching(`http://127.0.0.1:${port}/`))).stdout).toBe(`served 127.0.0.1:${port}\n`)
    })

    it.each([
      { what: 'another port of an allowed name', url: () => 'http://corral-broker:8788/', says: 'ECONNREFUSED' },
      { what: 'a name nobody allowed', url: () => 'http://example.com/', says: 'ENOTFOUND' },
      { what: 'an address nobody allowed', url: () => 'http://93.184.215.14/', says: 'ENETUNREACH' },
      { what: 'the metadata address of clouds (D-7)', url: () => 'http://169.254.169.254/', says: 'ENETUNREACH' },
    ])('refuses $what at once', async ({ url, says }) => {
      expect(await bench.run(open, fetching(url()))).toMatchObject({ exitCode: 1, stdout: `${says}\n` })
    })

    it.each([
      { name: 'corral-broker', resolver: '127.0.0.1', says: /^198\.18\./ },
      { name: 'corral-broker', resolver: '8.8.8.8', says: /^198\.18\./ },
      { name: 'any.depth.example.org', resolver: '1.1.1.1', says: /^198\.18\./ },
      { name: 'example.org', resolver: '127.0.0.1', says: /ENOTFOUND/ },
      { name: 'notexample.org', resolver: '127.0.0.1', says: /ENOTFOUND/ },
    ])('resolves $name asked at $resolver', async ({ name, resolver, says }) => {
      expect((await bench.run(open, resolving(name, resolver))).stdout).toMatch(says)
    })

    it('gives nothing at all to a pod without egress', async () => {
      expect((await bench.run(closed, fetching('http://corral-broker:8787/'))).exitCode).toBe(1)
      expect((await bench.run(closed, fetching(`http://127.0.0.1:${port}/`))).stdout).toBe('ECONNREFUSED\n')
    })

    it('leaves the pod its own ports on its own addresses, low ones included', async () => {
      const code =
        'const s=require("net").createServer();s.listen(80,"127.0.0.1",()=>{console.log("ok");process.exit()})'
      expect((await bench.run(open, `node -e '${code}'`)).stdout).toBe('ok\n')
      expect((await bench.run(open, `node -e '${code.replace('80', '8787')}'`)).stdout).toBe('ok\n')
    })
  })
})

import { createServer, type Server } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Cell, PodReach } from '../../isolation/isolation.js'
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

describe.each(variants)('egress of a running pod ($variant)', ({ variant, isHere }) => {
  describe.skipIf(!isHere)('with bubblewrap installed', () => {
    let bench: Workbench
    let server: Server
    let port: number
    let cell: Cell
    let broker: PodReach['services'][number]
    let packages: PodReach['services'][number]

    beforeAll(async () => {
      bench = openWorkbench(variant)
      server = createServer((request, response) => {
        // A response that never ends: the connection stays open until the test ends it.
        if (request.url === '/open') response.write('open\n')
        else response.end('served')
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      port = (server.address() as { port: number }).port
      broker = { names: ['corral-broker'], port: 8787, target: { host: '127.0.0.1', port } }
      packages = { names: [], port: 8788, onLoopback: true, target: { host: '127.0.0.1', port } }
      cell = await bench.start('exec sleep 600', { pod: { services: [broker], egress: [] } })
    })
    afterAll(async () => {
      server.closeAllConnections()
      server.close()
      await bench[Symbol.asyncDispose]()
    })

    const set = (reach: Partial<PodReach>) =>
      bench.isolation.setNetwork(cell.podUid, { egress: [], services: [broker], ...reach })
    /** What a program printed; one that was killed has printed nothing and is told as such. */
    const printed = async (program: string): Promise<string> => {
      const { stdout, stderr, exitCode } = await bench.run(cell, `node -e '${program}'`)
      if (exitCode !== 0) throw new Error(`the program ended with ${exitCode}: ${stderr}`)
      return stdout.trim()
    }
    const fetched = (url: string): Promise<string> =>
      printed(`fetch("${url}").then(r=>r.text()).then(t=>console.log(t),e=>console.log(e.cause?.code))`)
    const resolved = (name: string): Promise<string> =>
      printed(
        `const r=new (require("dns").promises.Resolver)();r.resolve4("${name}").then(a=>console.log(a[0]),e=>console.log(e.code))`,
      )

    it('opens a service on the pod’s loopback and closes it again', async () => {
      expect(await fetched('http://127.0.0.1:8788/')).toBe('ECONNREFUSED')
      expect(await set({ services: [broker, packages] })).toEqual({ restricted: true })
      expect(await fetched('http://127.0.0.1:8788/')).toBe('served')
      await set({})
      expect(await fetched('http://127.0.0.1:8788/')).toBe('ECONNREFUSED')
      expect(await fetched('http://corral-broker:8787/')).toBe('served')
    })

    it('opens an address and refuses it afterwards', async () => {
      await set({ egress: [{ host: '127.0.0.1', port }] })
      expect(await fetched(`http://127.0.0.1:${port}/`)).toBe('served')
      await set({})
      expect(await fetched(`http://127.0.0.1:${port}/`)).toBe('ECONNREFUSED')
    })

    it('a name keeps its address while it is granted and resolves no more afterwards', async () => {
      await set({ egress: [{ host: 'one.example.com', port: 443 }] })
      const address = await resolved('one.example.com')
      expect(address).toMatch(/^198\.18\./)
      await set({
        egress: [
          { host: 'two.example.com', port: 443 },
          { host: 'one.example.com', port: 443 },
        ],
      })
      expect(await resolved('one.example.com')).toBe(address)
      expect(await resolved('two.example.com')).not.toBe(address)
      await set({})
      expect(await resolved('one.example.com')).toBe('ENOTFOUND')
    })

    it('names below a wildcard come and go with it', async () => {
      await set({ egress: [{ host: '*.example.org', port: 443 }] })
      const address = await resolved('a.example.org')
      expect(address).toMatch(/^198\.18\./)
      await set({})
      expect(await resolved('a.example.org')).toBe('ENOTFOUND')
      await set({
        egress: [
          { host: '*.example.org', port: 443 },
          { host: '*.example.org', port: 80 },
        ],
      })
      expect(await resolved('a.example.org')).toBe(address)
    })

    it('ends open connections to what is revoked, and no others', async () => {
      await set({ services: [broker, packages] })
      const hold = (url: string, to: string): string =>
        `node -e 'require("http").get("${url}",r=>{r.on("data",()=>require("fs").writeFileSync("${to}","open"));r.on("error",()=>{})})'`
      const revoked = bench.run(cell, hold('http://127.0.0.1:8788/open', '/tmp/revoked'))
      const kept = bench.run(cell, hold('http://corral-broker:8787/open', '/tmp/kept'))
      const state = async (name: string): Promise<string> => (await bench.run(cell, `cat /tmp/${name}`)).stdout
      await expect.poll(() => state('revoked')).toBe('open')
      await expect.poll(() => state('kept')).toBe('open')
      let isKept = true
      void kept.then(() => {
        isKept = false
      })
      await set({})
      // The process lives as long as its connection.
      await revoked
      expect(isKept).toBe(true)
      server.closeAllConnections()
      await kept
    })

    it('a main that takes over can change it as well', async () => {
      const second = bench.reopen()
      await second.adopt()
      await second.setNetwork(cell.podUid, { egress: [], services: [packages] })
      expect(await fetched('http://127.0.0.1:8788/')).toBe('served')
      expect(await fetched('http://corral-broker:8787/')).toBe('ENOTFOUND')
      await second.close({ endPods: false })
    })

    it('an unknown pod is refused by name', async () => {
      await expect(bench.isolation.setNetwork('nobody', { egress: [], services: [] })).rejects.toMatchObject({
        code: 'PodNotPrepared',
      })
    })
  })
})

import { createServer, type Server } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Cell, NetworkReport, PodPlan } from '../../packages/node/src/isolation/isolation.js'
import {
  compiledSupervisor,
  hasBubblewrap,
  openWorkbench,
  until,
  type Variant,
  type Workbench,
} from '../../packages/node/src/isolation/workbench.test-suite.js'

const variants: { variant: Variant; isHere: boolean }[] = [
  { variant: 'bubblewrap + compiled supervisor', isHere: hasBubblewrap && compiledSupervisor() !== undefined },
  { variant: 'bubblewrap + Node supervisor', isHere: hasBubblewrap },
]

const guardMs = 240_000
const floodSize = process.env.CORRAL_TEST_SIZE === 'full' ? 3000 : 600

/** Opens so many connections, sends half a request on each, and says how many stay open once all have settled. */
const flooding = (connections: number, thenEnds = false): string => `node -e '
  let settled = 0, open = 0
  const done = () => { if (++settled === ${connections}) setTimeout(() => { console.log("open " + open); ${thenEnds ? 'process.exit()' : ''} }, 500) }
  const next = (left) => {
    if (left === 0) return
    let isOpen = false
    const socket = require("net").connect(8787, "corral-broker", () => {
      isOpen = true; open++
      socket.write("POST / HTTP/1.1\\r\\n")
      done(); next(left - 1)
    })
    socket.on("error", () => {}).on("close", () => { if (isOpen) open--; else { done(); next(left - 1) } })
  }
  for (let i = 0; i < 10; i++) next(${connections} / 10)
'`

const fetching = `node -e 'fetch("http://corral-broker:8787/").then(r=>r.text()).then(console.log,e=>{console.log(e.cause?.code);process.exit(1)})'`

describe.each(variants)('a flood of connections from one sandbox ($variant)', ({ variant, isHere }) => {
  describe.skipIf(!isHere)('with bubblewrap installed', () => {
    let bench: Workbench
    let broker: Server
    let services: PodPlan['services']
    let attacker: Cell
    let victim: Cell
    const reports: NetworkReport[] = []

    beforeAll(async () => {
      bench = openWorkbench(variant, { openFiles: 512 })
      broker = createServer((_request, response) => response.end('served'))
      await new Promise<void>((resolve) => broker.listen(0, '127.0.0.1', resolve))
      const { port } = broker.address() as { port: number }
      services = [{ names: ['corral-broker'], port: 8787, target: { host: '127.0.0.1', port } }]
      bench.isolation.watchNetwork((report) => reports.push(report))
      attacker = await bench.start('exec sleep 600', { pod: { services } })
      victim = await bench.start('exec sleep 600', { pod: { services } })
    }, guardMs)
    afterAll(async () => {
      broker.closeAllConnections()
      broker.close()
      await bench[Symbol.asyncDispose]()
    }, guardMs)

    it(
      'leaves the others their broker, new pods their start, and the attacker its end',
      async () => {
        // The control: as many connections as a busy package manager opens are all carried.
        expect(await bench.run(attacker, flooding(20, true))).toMatchObject({ stdout: 'open 20\n' })

        const flood = await attacker.exec({
          command: ['/bin/sh', '-c', flooding(floodSize)],
          stdin: false,
          stdout: true,
          stderr: true,
          tty: false,
        })
        let said = ''
        const reading = (async () => {
          for await (const chunk of flood.stdout) said += Buffer.from(chunk).toString()
        })()
        await until('the flood has reached its height', () => said.includes('\n'), guardMs)
        const open = Number(said.replace('open ', ''))
        expect(open).toBeGreaterThanOrEqual(20)
        expect(open).toBeLessThan(100)
        const told = (): NetworkReport | undefined => reports.findLast(({ podUid }) => podUid === attacker.podUid)
        await until('every refusal is told', () => told()?.refusedConnections === floodSize - open, guardMs)
        expect(told()).toMatchObject({ connectionLimit: { of: 'pod', connections: open } })
        expect(reports.length).toBeLessThan(floodSize / 4)

        expect(await bench.run(victim, fetching)).toMatchObject({ stdout: 'served\n', exitCode: 0 })
        const fresh = await bench.start('exec sleep 600', { pod: { services } })
        expect(await bench.run(fresh, fetching)).toMatchObject({ stdout: 'served\n', exitCode: 0 })
        await bench.isolation.releasePod(attacker.podUid)
        await reading
        expect(await attacker.exited).toMatchObject({ exitCode: 137 })
        expect(await bench.run(victim, fetching)).toMatchObject({ stdout: 'served\n', exitCode: 0 })
      },
      guardMs,
    )
  })
})

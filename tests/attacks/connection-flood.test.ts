import { createServer, type Server } from 'node:http'
import { bubblewrapIsolation } from '@corral/node'
import { egressRefusedAnnotation } from '@corral/resources'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Cell, NetworkReport, PodPlan } from '../../packages/node/src/isolation/isolation.js'
import {
  compiledSupervisor,
  hasBubblewrap,
  nodeWithOpenFiles,
  openWorkbench,
  until,
  type Variant,
  type Workbench,
} from '../../packages/node/src/isolation/workbench.test-suite.js'
import { isReady, nodeUnderTest } from '../node/node-under-test.js'

const variants: { variant: Variant; isHere: boolean }[] = [
  { variant: 'bubblewrap + compiled supervisor', isHere: hasBubblewrap && compiledSupervisor() !== undefined },
  { variant: 'bubblewrap + Node supervisor', isHere: hasBubblewrap },
]

const guardMs = 240_000
/** Below the number that is looked at in one burst, so that every refusal is counted. */
const floodSize = 900

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

/** A program as an argument of a shell: none of it is read by the shell. */
const node = (program: string): string =>
  `node -e "eval(Buffer.from('${Buffer.from(program).toString('base64')}', 'base64').toString())"`

/** Opens and closes connections, 64 at a time, until the kernel has refused 100 or a minute is over; says what became of them. */
const churning = node(`require('dns').lookup('corral-broker', (_error, address) => {
    const said = { opened: 0, refused: 0, seconds: 0 }
    const began = performance.now()
    let working = 64
    const next = () => {
      said.seconds = (performance.now() - began) / 1000
      if (said.seconds > 60 || said.refused >= 100) return --working === 0 && console.log(JSON.stringify(said))
      const socket = require('net').connect(8787, address, () => { said.opened++; socket.destroy() })
      // One whose first packet the kernel dropped would be tried again for two minutes.
      socket.setTimeout(5000, () => socket.destroy())
      socket.on('error', ({ code }) => { if (code === 'ECONNREFUSED') said.refused++ })
      socket.on('close', next)
    }
    for (let i = 0; i < 64; i++) next()
  })`)

/** As many requests, each on a connection of its own, four at a time; says what became of them. */
const requesting = (requests: number): string =>
  node(`const said = { served: 0, failed: 0 }
    let left = ${requests}, working = 4
    const next = () => {
      if (left-- <= 0) return --working === 0 && console.log(JSON.stringify(said))
      require('http').get({ host: 'corral-broker', port: 8787, agent: false }, (response) => {
        response.resume().on('end', () => { said.served++; next() })
      }).on('error', () => { said.failed++; next() })
    }
    for (let i = 0; i < 4; i++) next()`)

/** Asks for one name over and over without waiting, then says how many answers came. */
const asking = (questions: number): string =>
  node(`const question = Buffer.from('123401000001000000000000036f6e65076578616d706c65036f72670000010001', 'hex')
    const server = require('fs').readFileSync('/etc/resolv.conf', 'utf8').match(/nameserver (\\S+)/)[1]
    const socket = require('dgram').createSocket('udp4')
    let answers = 0, left = ${questions}
    socket.on('message', () => { answers++ }).on('error', () => {})
    const send = () => {
      for (let i = 0; i < 50 && left > 0; i++, left--) socket.send(question, 53, server, () => {})
      if (left > 0) setImmediate(send)
      else setTimeout(() => { console.log(answers); process.exit() }, 1000)
    }
    send()`)

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
        // A busy machine opens them slowly: many that were open are closed for saying nothing meanwhile, and are no refusals.
        const many = floodSize / 5
        await until('the refusals are told', () => (told()?.refusedConnections ?? 0) >= many, guardMs)
        expect(told()).toMatchObject({ connectionLimit: { of: 'pod' } })
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

    it(
      'refuses connections that are opened and closed without end, and carries some again a moment later',
      async () => {
        const pod = await bench.start('exec sleep 600', { pod: { services } })
        // The control: as many as an installation opens are all carried.
        const few = await bench.run(pod, requesting(200))
        expect(JSON.parse(few.stdout)).toEqual({ served: 200, failed: 0 })

        // Without a limit all of them would be the platform's work; here the kernel refuses, in the pod's own time.
        const many = JSON.parse((await bench.run(pod, churning)).stdout) as Record<
          'opened' | 'refused' | 'seconds',
          number
        >
        if (many.refused >= 100) {
          const told = (): NetworkReport | undefined => reports.findLast(({ podUid }) => podUid === pod.podUid)
          await until('the limit is told', () => told()?.connectionLimit?.of === 'second', guardMs)
        } else {
          // On a machine too busy for more than 200 a second; those that wait to be accepted are open for the kernel.
          expect(many.opened).toBeLessThan(2_000 + 400 * many.seconds)
        }
        expect(await bench.run(victim, fetching)).toMatchObject({ stdout: 'served\n', exitCode: 0 })
        await until(
          'the pod is served again',
          async () => (await bench.run(pod, fetching)).stdout === 'served\n',
          guardMs,
        )
      },
      guardMs,
    )

    it(
      'answers a burst of questions for names, not a flood, and answers again a moment later',
      async () => {
        const pod = await bench.start('exec sleep 600', { pod: { services } })
        // The control: what a resolver asks for is answered.
        expect(Number((await bench.run(pod, asking(50))).stdout)).toBe(50)
        const flood = await bench.run(pod, asking(50_000))
        expect(Number(flood.stdout)).toBeLessThan(10_000)
        await until(
          'names are answered again',
          async () => (await bench.run(pod, fetching)).stdout === 'served\n',
          guardMs,
        )
      },
      guardMs,
    )
  })
})

describe.skipIf(!hasBubblewrap)('what is told of a flood of connections (bubblewrap installed)', () => {
  it(
    'an event of the pod names the limit once, an annotation counts what was refused; a pod within it has neither',
    async () => {
      const broker = createServer((_request, response) => response.end('served'))
      await new Promise<void>((resolve) => broker.listen(0, '127.0.0.1', resolve))
      const { port } = broker.address() as { port: number }
      await using node = await nodeUnderTest(
        (dataDir) => bubblewrapIsolation({ dataDir, nodePath: nodeWithOpenFiles(dataDir, 512) }),
        { services: [{ names: ['corral-broker'], port: 8787, target: { host: '127.0.0.1', port } }] },
      )
      const spec = { containers: [{ name: 'main', image: 'busybox', command: ['sleep', '600'] }] }
      for (const name of ['calm', 'flood']) await node.create(name, spec)
      for (const name of ['calm', 'flood']) await node.until(name, isReady)
      await node.run('calm', ['sh', '-c', flooding(20, true)])
      await node.run('flood', ['sh', '-c', flooding(floodSize, true)])
      const refused = (pod: { metadata: { annotations?: Record<string, string> | undefined } }): number => {
        const value = pod.metadata.annotations?.[egressRefusedAnnotation]
        return value === undefined ? 0 : (JSON.parse(value) as { refusedConnections: number }).refusedConnections
      }
      await node.until('flood', (pod) => refused(pod) > floodSize / 2)
      const told = async (name: string): Promise<string[]> =>
        (await node.events(name)).flatMap(({ reason, message }) => (reason === 'ConnectionsRefused' ? message : []))
      await expect
        .poll(() => told('flood'), { timeout: guardMs })
        .toContainEqual(expect.stringMatching(/^the pod has more than \d+ connections open at once/))
      expect(new Set(await told('flood')).size).toBe((await told('flood')).length)
      expect(await told('calm')).toEqual([])
      expect(refused(await node.until('calm', isReady))).toBe(0)
      broker.closeAllConnections()
      broker.close()
    },
    guardMs,
  )
})

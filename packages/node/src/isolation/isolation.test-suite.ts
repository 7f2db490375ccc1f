import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { encodeFrame, Frame } from '../cradle/protocol/frames.js'
import { parseCgroupMounts, parseOwnCgroups } from '../cradle/server/cgroups.js'
import { pidsOfUid } from '../cradle/server/process-table.js'
import type { Cell } from './isolation.js'
import { cradleOf, openWorkbench, text, until, type Variant, type Workbench } from './workbench.test-suite.js'

const exec = { stdin: false, stdout: true, stderr: true, tty: false }
const isRoot = process.getuid?.() === 0

/** The cases every tier and supervisor passes. What a tier does not promise is skipped with its reason. */
export function describeIsolation(variant: Variant): void {
  const isProcess = variant === 'process'

  describe(variant, () => {
    let bench: Workbench
    let shared: Cell
    beforeAll(async () => {
      bench = openWorkbench(variant)
      shared = await bench.start('exec sleep 600')
    })
    afterAll(async () => {
      await bench[Symbol.asyncDispose]()
    })

    describe('the main process', () => {
      it.each([
        { when: 'it succeeds', script: 'exit 0', exit: { exitCode: 0 } },
        { when: 'it fails with a code of its own', script: 'exit 42', exit: { exitCode: 42 } },
        { when: 'a signal ends it', script: 'kill -9 $$', exit: { exitCode: 137, signal: 9 } },
      ])('reports its exit when $when', async ({ script, exit }) => {
        const cell = await bench.start(script)
        expect(await cell.exited).toMatchObject({ ...exit, oomKilled: false })
      })

      it('is released once, however many ask for it at the same time', async () => {
        const cell = await bench.start('exec sleep 600')
        const release = (): Promise<void> => bench.isolation.releasePod(cell.podUid)
        await Promise.all([release(), release(), release()])
        expect(await cell.exited).toMatchObject({ exitCode: 137 })
        expect(await bench.run(shared, 'echo still here')).toMatchObject({ stdout: 'still here\n' })
      })

      it('stays when the rest of its container is ended', async () => {
        // Seconds that no other process on the machine sleeps: without a namespace the list shows all processes.
        const [main, child, apart, beside] = [1, 2, 3, 4].map((last) => 10_000_000 + process.pid * 10 + last)
        const cell = await bench.start(`sleep ${child} & setsid sleep ${apart} & exec sleep ${main}`)
        const started = await cell.exec({ ...exec, command: ['sleep', String(beside)] })
        const sleeping = async (): Promise<number[]> => {
          const { stdout } = await bench.run(cell, 'ps -e -o args=')
          return [main, child, apart, beside].flatMap((seconds) =>
            stdout.includes(`sleep ${seconds}`) ? seconds! : [],
          )
        }
        await until('all of them run', async () => (await sleeping()).length === 4)
        await cell.halt()
        expect((await started.exited).exitCode).toBe(137)
        expect(await sleeping()).toEqual([main])
        await bench.isolation.releasePod(cell.podUid)
      })

      it.skipIf(isProcess)(
        'leaves no dead process in its container when what it left behind ends (the first process of the machine is not ours)',
        async () => {
          const cell = await bench.start(`sh -c 'sleep 0.01 & exit 0'; touch /tmp/left; exec sleep 600`)
          const look = 'test -e /tmp/left && cat /proc/[0-9]*/stat'
          await until('all have been reaped', async () => {
            const { stdout } = await bench.run(cell, look)
            return stdout !== '' && !/ \((sh|sleep)\) Z /.test(stdout) && stdout.split('(sleep)').length === 2
          })
          await bench.isolation.releasePod(cell.podUid)
        },
      )

      it('is refused with a typed error when the command does not exist', async () => {
        const pod = bench.pod()
        await bench.isolation.preparePod(pod)
        const plan = bench.plan(pod, '', { argv: ['/no/such/program'] })
        await expect(bench.isolation.launch(plan)).rejects.toMatchObject({ code: 'NotFound' })
        await bench.isolation.releasePod(pod.podUid)
      })

      it('writes both streams to its log in the CRI format, the unfinished last line included', async () => {
        const cell = await bench.start('echo one; echo two >&2; printf three')
        await cell.exited
        const log = readFileSync(join(bench.dataDir, 'pods', cell.podUid, 'logs', 'main.log'), 'utf8')
        const lines = log.trimEnd().split('\n')
        expect(lines.every((line) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (stdout|stderr) [FP] /.test(line))).toBe(
          true,
        )
        expect(lines.map((line) => line.split(' ').slice(1).join(' ')).sort()).toEqual([
          'stderr F two',
          'stdout F one',
          'stdout P three',
        ])
      })

      it('loses nothing of a long output whose writer ends at once', async () => {
        const cell = await bench.start('seq 1 200000')
        await cell.exited
        const log = readFileSync(join(bench.dataDir, 'pods', cell.podUid, 'logs', 'main.log'), 'utf8')
        expect(log.trimEnd().split('\n').length).toBe(200_000)
        expect(log.trimEnd().endsWith(' stdout F 200000')).toBe(true)
      })

      it('loses nothing of its last output when the cradle gets no turn for seconds', async () => {
        const script = 'while [ ! -e "$HOME/go" ]; do sleep 0.02; done; head -c 500000 /dev/zero | tr "\\0" x'
        const cell = await bench.start(script)
        const cradle = cradleOf(bench.dataDir)
        process.kill(cradle, 'SIGSTOP')
        try {
          const opener = await cell.exec({ ...exec, command: ['/bin/sh', '-c', ': > "$HOME/go"'] })
          await opener.exited
          await pause(4_000)
        } finally {
          process.kill(cradle, 'SIGCONT')
        }
        expect(await cell.exited).toMatchObject({ exitCode: 0 })
        const log = readFileSync(join(bench.dataDir, 'pods', cell.podUid, 'logs', 'main.log'), 'utf8')
        expect(log.match(/x/g)?.length).toBe(500_000)
      })

      it('receives signals', async () => {
        const cell = await bench.start('trap "exit 7" TERM; echo ready; while :; do sleep 0.05; done')
        const log = join(bench.dataDir, 'pods', cell.podUid, 'logs', 'main.log')
        await until('the trap is set', () => existsSync(log) && readFileSync(log, 'utf8').includes('ready'))
        await cell.signal('SIGTERM')
        expect(await cell.exited).toMatchObject({ exitCode: 7 })
        await expect(cell.signal('SIGTERM')).rejects.toMatchObject({ code: 'CellLost' })
      })

      it('sees the environment, the working directory and the identity of its plan', async () => {
        const cell = await bench.start('exec sleep 600', { plan: { env: { COLOUR: 'a b=c' }, workingDir: '/tmp' } })
        const { stdout } = await bench.run(cell, 'echo "$COLOUR"; id -u; pwd; hostname')
        const [colour, uid, directory] = stdout.split('\n')
        expect(colour).toBe('a b=c')
        if (!isProcess) expect([uid, directory]).toEqual(['1000', '/tmp'])
        await bench.isolation.releasePod(cell.podUid)
      })

      it('takes everything it started along when it ends', async () => {
        const pod = bench.pod()
        await bench.isolation.preparePod(pod)
        const cell = await bench.isolation.launch(bench.plan(pod, '(setsid sleep 600 &); sleep 600 & exit 0'))
        await cell.exited
        if (isRoot) await until('the pod has no process left', () => pidsOfUid(pod.hostUid).length === 0)
        await bench.isolation.releasePod(pod.podUid)
      })

      it.skipIf(!isRoot)('is reported as killed for memory when it exceeds its limit', async () => {
        const script = 'exec node -e "const a=[];for(;;)a.push(Buffer.alloc(1<<20,1))"'
        const cell = await bench.start(script, { plan: { limits: { memoryBytes: 96 * 1024 * 1024 } } })
        expect(await cell.exited).toMatchObject({ exitCode: 137, oomKilled: true })
      })

      it.skipIf(!isRoot)('is held to other limits from the moment they change', async () => {
        const hungry = 'head -c 150M /dev/zero | tail -c 150M | wc -c'
        const small = { memoryBytes: 64 * 1024 * 1024 }
        const cell = await bench.start('exec sleep 600', { pod: { limits: small }, plan: { limits: small } })
        const large = { memoryBytes: 512 * 1024 * 1024 }
        const limits = { pod: large, containers: { main: large } }
        expect(await bench.isolation.setLimits(cell.podUid, limits)).toEqual({ enforced: true })
        expect(await bench.run(cell, hungry)).toMatchObject({ stdout: `${150 * 1024 * 1024}\n` })
        await bench.isolation.setLimits(cell.podUid, { pod: small, containers: { main: small } })
        expect((await bench.run(cell, hungry)).stdout).not.toContain(String(150 * 1024 * 1024))
        await bench.isolation.releasePod(cell.podUid)
      })

      it('has no limits to change before it was prepared', async () => {
        await expect(bench.isolation.setLimits('nobody', { pod: {}, containers: {} })).rejects.toMatchObject({
          code: 'PodNotPrepared',
        })
      })

      it('is ended by kill however it resists', async () => {
        const cell = await bench.start('trap "" TERM INT HUP; while :; do sleep 0.1; done')
        await cell.kill()
        expect(await cell.exited).toMatchObject({ exitCode: 137, signal: 9 })
      })
    })

    describe('exec', () => {
      it.each([
        {
          when: 'a command succeeds',
          script: 'echo out; echo err >&2',
          result: { stdout: 'out\n', stderr: 'err\n', exitCode: 0 },
        },
        { when: 'it fails', script: 'exit 3', result: { exitCode: 3 } },
        { when: 'it is killed', script: 'kill -15 $$', result: { exitCode: 143 } },
        {
          when: 'it leaves a child behind that holds its output',
          script: 'sleep 600 & echo done',
          result: { stdout: 'done\n', exitCode: 0 },
        },
      ])('answers output and exit when $when', async ({ script, result }) => {
        expect(await bench.run(shared, script)).toMatchObject(result)
      })

      it('carries standard input to its end', async () => {
        const running = await shared.exec({ ...exec, command: ['wc', '-c'], stdin: true })
        for (let i = 0; i < 20; i++) await running.writeStdin(Buffer.alloc(50_000, 'x'))
        running.endStdin()
        expect((await text(running.stdout)).trim()).toBe('1000000')
        expect(await running.exited).toMatchObject({ exitCode: 0 })
      })

      it('loses nothing of a megabyte that is read late', async () => {
        // Of these sizes some just fit between writer and reader: their writers end with every buffer full.
        const sizes = Array.from({ length: 10 }, (_, index) => 1_200_000 + index * 100_000)
        const running = await Promise.all(
          sizes.map((size) => shared.exec({ ...exec, command: ['head', '-c', String(size), '/dev/zero'] })),
        )
        await pause(1_000)
        const received = running.map(async ({ stdout }) => {
          let bytes = 0
          for await (const chunk of stdout) bytes += chunk.length
          return bytes
        })
        expect(await Promise.all(received)).toEqual(sizes)
      })

      it('reports 137 when the container ends under it', async () => {
        const cell = await bench.start('while [ ! -e "$HOME/go" ]; do sleep 0.02; done')
        const running = await cell.exec({ ...exec, command: ['sleep', '600'] })
        const opener = await cell.exec({ ...exec, command: ['/bin/sh', '-c', ': > "$HOME/go"'] })
        expect(await running.exited).toMatchObject({ exitCode: 137 })
        await opener.exited
        expect(await cell.exited).toMatchObject({ exitCode: 0 })
      })

      it('is refused with CellLost once the container has ended', async () => {
        const cell = await bench.start('exit 0')
        await cell.exited
        await expect(cell.exec({ ...exec, command: ['true'] })).rejects.toMatchObject({ code: 'CellLost' })
      })

      it('ends when its caller gives up', async () => {
        const giveUp = new AbortController()
        const running = await shared.exec({ ...exec, command: ['sleep', '600'], signal: giveUp.signal })
        giveUp.abort()
        expect(await running.exited).toMatchObject({ exitCode: 137 })
      })

      it('is still served after connections that speak nonsense', async () => {
        const directory = join(bench.dataDir, 'cradle', 's')
        const nonsense = fc.sample(fc.uint8Array({ minLength: 1, maxLength: 200 }), { numRuns: 40, seed: 7 })
        const typed = fc.sample(fc.tuple(fc.integer({ min: 0, max: 0x30 }), fc.string()), { numRuns: 40, seed: 7 })
        // Ending the container and signalling it are sense, not nonsense.
        const messages = [...nonsense, ...typed.map(([type, payload]) => encodeFrame(type, payload))].filter(
          ([type]) => type !== Frame.signal && type !== Frame.kill,
        )
        for (const name of readdirSync(directory)) {
          await Promise.all(messages.map((message) => sendAndHangUp(join(directory, name), message)))
        }
        expect(await bench.run(shared, 'echo served')).toMatchObject({ stdout: 'served\n' })
      })

      it('tells how a command ended that was quicker than the end of its input', async () => {
        const codes: number[] = []
        for (let round = 0; round < 40; round++) {
          const running = await shared.exec({ ...exec, command: ['true'], stdin: true })
          running.endStdin()
          codes.push((await running.exited).exitCode)
        }
        expect(codes.filter((code) => code !== 0)).toEqual([])
      })

      it('rejects a command that does not exist', async () => {
        await expect(shared.exec({ ...exec, command: ['no-such-command'] })).rejects.toMatchObject({ code: 'NotFound' })
      })

      it('adds its own environment and directory to the container’s', async () => {
        const command = ['/bin/sh', '-c', 'echo $EXTRA; pwd']
        const running = await shared.exec({ ...exec, command, env: { EXTRA: 'yes' }, workingDir: '/usr' })
        expect(await text(running.stdout)).toBe('yes\n/usr\n')
      })

      it('kills the whole group when the caller hangs up', async () => {
        const mark = `9${Math.floor(Math.random() * 1e8)}`
        const command = ['/bin/sh', '-c', `sleep ${mark} & echo up; wait`]
        const running = await shared.exec({ ...exec, command })
        for await (const _chunk of running.stdout) break
        running.kill()
        const isGone = async (): Promise<boolean> => {
          const { stdout } = await bench.run(shared, 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " "')
          return !stdout.includes(`sleep ${mark}`)
        }
        await until('the group is gone', isGone)
      })

      it('does not let one client that never reads stop another', async () => {
        const stuck = await shared.exec({ ...exec, command: ['yes'] })
        expect(await bench.run(shared, 'echo free')).toMatchObject({ stdout: 'free\n' })
        stuck.kill()
      })

      it('runs twenty at once', async () => {
        const runs = Array.from({ length: 20 }, (_, i) => bench.run(shared, `echo ${i}`))
        expect((await Promise.all(runs)).map(({ stdout }) => Number(stdout))).toEqual([...Array(20).keys()])
      })
    })

    describe('a terminal', () => {
      it('is one, has a size, follows a resize and keeps its tail', async () => {
        const wait = 'n=0; while [ "$(stty size)" != "37 101" ] && [ $n -lt 400 ]; do sleep 0.02; n=$((n+1)); done'
        const command = ['/bin/sh', '-c', `tty; read x; ${wait}; stty size; seq 1 2000; echo last`]
        const running = await shared.exec({ ...exec, command, stdin: true, tty: true })
        running.resize(101, 37)
        let seen = ''
        let hasAnswered = false
        for await (const chunk of running.stdout) {
          seen += Buffer.from(chunk).toString()
          if (seen.includes('/dev/pts/') && !hasAnswered) await running.writeStdin(Buffer.from('\n'))
          hasAnswered ||= seen.includes('/dev/pts/')
        }
        expect(seen).toMatch(/\/dev\/pts\/\d+/)
        expect(seen).toContain('37 101')
        expect(seen.trimEnd().endsWith('last')).toBe(true)
        expect(await running.exited).toMatchObject({ exitCode: 0 })
      })
    })

    describe('dial', () => {
      it('reaches a server inside and carries both directions with half-close', async () => {
        const port = 20_000 + Math.floor(Math.random() * 10_000)
        const code = `require("net").createServer({allowHalfOpen:true},s=>{let n=0;s.on("data",d=>n+=d.length).on("end",()=>s.end("got "+n))}).listen(${port},()=>console.log("up"))`
        const server = await shared.exec({ ...exec, command: ['node', '-e', code] })
        for await (const _chunk of server.stdout) break
        const stream = await shared.dial(port)
        for (let i = 0; i < 10; i++) await stream.write(Buffer.alloc(100_000, 1))
        stream.end()
        expect(await text(stream)).toBe('got 1000000')
        server.kill()
      })

      it('answers ConnectionRefused where nobody listens', async () => {
        await expect(shared.dial(9)).rejects.toMatchObject({ code: 'ConnectionRefused' })
      })
    })

    describe('attach', () => {
      it('shows output from now on and feeds standard input', async () => {
        const cell = await bench.start('while read line; do echo "heard $line"; done; exit 5', {
          plan: { stdin: true },
        })
        const attached = await cell.attach({ stdin: true, tty: false })
        await attached.writeStdin(Buffer.from('hello\n'))
        const iterator = attached.stdout[Symbol.asyncIterator]()
        expect(Buffer.from((await iterator.next()).value ?? '').toString()).toBe('heard hello\n')
        attached.endStdin()
        expect(await attached.exited).toMatchObject({ exitCode: 5 })
        expect(await cell.exited).toMatchObject({ exitCode: 5 })
      })
    })

    describe('the life of pods', () => {
      it('adopts cells that outlived a main which was killed', async () => {
        const pod = bench.pod()
        await bench.launchFromDoomedMain(pod, bench.plan(pod, 'exec sleep 600'))
        const second = bench.reopen()
        const cells = await second.adopt()
        const adopted = cells.find(({ podUid }) => podUid === pod.podUid)
        expect(await bench.run(adopted as Cell, 'echo alive')).toMatchObject({ stdout: 'alive\n' })
        await second.releasePod(pod.podUid)
        expect(await adopted?.exited).toMatchObject({ exitCode: 137 })
        await second.close({ endPods: false })
      })

      it('leaves nothing of a released pod', async () => {
        const pod = bench.pod()
        await bench.isolation.preparePod(pod)
        const cell = await bench.isolation.launch(bench.plan(pod, 'sleep 600 & sleep 600'))
        const groups = isRoot ? pidsOfUid(pod.hostUid).flatMap(cgroupsOf) : []
        if (isRoot) expect(groups.length).toBeGreaterThan(0)
        await bench.isolation.releasePod(pod.podUid)
        await cell.exited
        if (isRoot) expect(pidsOfUid(pod.hostUid)).toEqual([])
        expect(groups.filter((path) => existsSync(path))).toEqual([])
        const journal = readdirSync(join(bench.dataDir, 'cradle', 'journal'))
        expect(journal.filter((name) => name.includes(pod.podUid))).toEqual([])
        await bench.isolation.releasePod(pod.podUid)
      })

      it('shares the network between the containers of a pod, and nothing else of theirs', async () => {
        const pod = bench.pod()
        await bench.isolation.preparePod(pod)
        const port = 30_000 + Math.floor(Math.random() * 10_000)
        const code = `require("http").createServer((q,s)=>s.end("from a")).listen(${port},()=>console.log("up"))`
        await bench.isolation.launch(bench.plan(pod, '', { container: 'a', argv: ['node', '-e', code] }))
        const b = await bench.isolation.launch(bench.plan(pod, 'exec sleep 600', { container: 'b' }))
        await until('the server answers', async () => {
          const { stdout } = await bench.run(
            b,
            `node -e 'fetch("http://127.0.0.1:${port}").then(r=>r.text()).then(console.log,()=>{})'`,
          )
          return stdout.includes('from a')
        })
        await bench.isolation.releasePod(pod.podUid)
      })

      it('launches the same attempt once, however often it is asked to', async () => {
        const pod = bench.pod()
        await Promise.all([bench.isolation.preparePod(pod), bench.isolation.preparePod(pod)])
        const plan = bench.plan(pod, 'echo begun; exec sleep 600')
        const [first, second] = await Promise.all([bench.isolation.launch(plan), bench.isolation.launch(plan)])
        expect(second).toBe(first)
        await until('it has spoken', () => existsSync(plan.logPath))
        await bench.isolation.releasePod(pod.podUid)
        expect(readFileSync(plan.logPath, 'utf8').trim().split('\n').length).toBe(1)
      })

      it.skipIf(isProcess)('gives a cell its memory file systems and keeps a read-only root read-only', async () => {
        const overrides = { readOnlyRoot: true, tmpfs: [{ target: '/scratch', sizeBytes: 1024 * 1024 }] }
        const cell = await bench.start('exec sleep 600', { plan: overrides })
        const script =
          '(: > /file) 2>/dev/null || echo refused; : > /scratch/file && echo written; head -c 2000000 /dev/zero > /scratch/big 2>/dev/null || echo full'
        expect((await bench.run(cell, script)).stdout).toBe('refused\nwritten\nfull\n')
        await bench.isolation.releasePod(cell.podUid)
      })

      it('mounts what the plan says, read-only where it says so', async () => {
        const pod = bench.pod()
        writeFileSync(join(pod.directory, 'config'), 'value')
        await bench.isolation.preparePod(pod)
        const mounts = [{ source: join(pod.directory, 'config'), target: '/etc/app/config', readOnly: true }]
        const plan = bench.plan(pod, 'exec sleep 600', { mounts, env: { CONFIG: '/etc/app/config' } })
        const cell = await bench.isolation.launch(plan)
        const { stdout } = await bench.run(cell, 'cat "$CONFIG"; (echo x > "$CONFIG") 2>/dev/null || echo refused')
        // Without mounts only the file's own mode protects it.
        expect(stdout).toBe(isProcess && !isRoot ? 'value' : 'valuerefused\n')
        await bench.isolation.releasePod(pod.podUid)
      })
    })

    it('reports cells of a cradle that was killed as lost, and ends what they left', async () => {
      const other = openWorkbench(variant)
      onTestFinished(() => other[Symbol.asyncDispose]())
      const pod = other.pod()
      await other.isolation.preparePod(pod)
      const cell = await other.isolation.launch(other.plan(pod, 'sleep 600 & exec sleep 600'))
      process.kill(Number(readFileSync(join(other.dataDir, 'cradle', 'cradle.pid'), 'utf8')), 'SIGKILL')
      expect(await cell.exited).toMatchObject({ exitCode: 137, lost: true })
      const again = await other.isolation.adopt()
      expect(again.map(({ podUid }) => podUid)).toEqual([pod.podUid])
      expect(await again[0]?.exited).toMatchObject({ lost: true })
      expect(await other.isolation.adopt()).toEqual([])
      if (isRoot) await until('no process of the pod is left', () => pidsOfUid(pod.hostUid).length === 0)
    })
  })
}

async function sendAndHangUp(path: string, message: Uint8Array): Promise<void> {
  const socket = connect(path)
  socket.on('error', () => socket.destroy())
  await new Promise<void>((resolve) => {
    socket.write(message, () => {
      socket.destroy()
      resolve()
    })
    socket.once('close', () => resolve())
  })
}

/** The directories of the control groups a process is in, those made for cells only. */
function cgroupsOf(pid: number): string[] {
  const own = parseOwnCgroups(readFileSync(`/proc/${pid}/cgroup`, 'utf8'))
  const mounts = parseCgroupMounts(readFileSync('/proc/self/mounts', 'utf8'))
  return mounts
    .map(({ path, type, options }) => {
      const name = type === 'cgroup2' ? '' : [...own.keys()].find((key) => key && options.includes(key))
      return join(path, own.get(name ?? '') ?? '')
    })
    .filter((path) => path.includes('/corral-'))
}

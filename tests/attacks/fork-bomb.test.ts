import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bubblewrapIsolation } from '@corral/node'
import { Pods } from '@corral/resources'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Cgroup } from '../../packages/node/src/cradle/server/cgroups.js'
import { StateFiles } from '../../packages/node/src/cradle/server/state-files.js'
import {
  compiledSupervisor,
  hasBubblewrap,
  openWorkbench,
  type Workbench,
} from '../../packages/node/src/isolation/workbench.test-suite.js'
import { isReady, nodeUnderTest } from '../node/node-under-test.js'

const isRoot = process.getuid?.() === 0
const canFreeze = isRoot && ['', 'unified/'].some((at) => existsSync(`/sys/fs/cgroup/${at}cgroup.controllers`))
const guardMs = 240_000

/** Starts processes without end, however many are refused. */
const bomb = `exec node -e 'setInterval(() => {
  for (let i = 0; i < 50; i++) require("child_process").spawn("sleep", ["600"], { stdio: "ignore" }).on("error", () => {})
}, 5)'`
/** Takes every process it may have once, then works with what it has. */
const greedy = `i=0; while [ $i -lt 50 ]; do sleep 600 & i=$((i+1)); done; exec sleep 600`
/** Processes that start others one after the other, never as many as are refused. */
const churn = `i=0; while [ $i -lt 130 ]; do (while :; do (:); done) & i=$((i+1)); done; exec sleep 600`
/** As many that wait. */
const crowd = `i=0; while [ $i -lt 130 ]; do sleep 600 & i=$((i+1)); done; exec sleep 600`

const running = (script: string) => ({
  containers: [{ name: 'main', image: 'busybox', command: ['sh', '-c', script] }],
})

/** The groups of a node's pods. */
function podGroups(dataDir: string): Cgroup[] {
  const groups = new StateFiles(join(dataDir, 'cradle')).groups()
  const all = groups && new Cgroup(groups, '')
  return (all?.children() ?? []).map((name) => all!.child(name))
}

function isStopped(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.startsWith('T') === true
  } catch {
    return false // It has ended.
  }
}

const supervisors = [
  { supervisor: 'compiled', isHere: compiledSupervisor() !== undefined },
  { supervisor: 'Node', isHere: true },
]

describe.skipIf(!hasBubblewrap || !canFreeze).each(supervisors.filter(({ isHere }) => isHere))(
  'a fork bomb ($supervisor supervisor, bubblewrap, root, control groups)',
  ({ supervisor }) => {
    let bench: Workbench | undefined
    beforeAll(() => {
      // For the script of the Node supervisor, which it makes.
      bench = supervisor === 'Node' ? openWorkbench('bubblewrap + Node supervisor') : undefined
    })
    afterAll(() => bench?.[Symbol.asyncDispose]())
    const isolation = (dataDir: string) =>
      bubblewrapIsolation({
        dataDir,
        ...(bench ? { supervisorPath: null, supervisorScript: join(bench.dataDir, 'node-supervisor.mjs') } : {}),
      })

    it(
      'is refused before the kernel copies anything, and told of; others work, and it can be ended; many processes alone are not told of',
      async () => {
        await using node = await nodeUnderTest(isolation, {
          pidsLimit: 64,
        })
        await node.create('victim', running('exec sleep 600'))
        await node.create('greedy', running(greedy))
        await node.create('bomb', running(bomb))
        await node.create('beside', running(`(${bomb}) & exec sleep 600`))
        for (const name of ['victim', 'greedy']) await node.until(name, isReady)
        const told = async (name: string): Promise<string[]> => (await node.events(name)).map(({ reason }) => reason)
        for (const name of ['bomb', 'beside'])
          await expect.poll(() => told(name), { timeout: guardMs }).toContain('ForksRefused')
        // By the limit of the pod's user, which comes first; its control group, which copies first, refuses nothing.
        const counted = podGroups(node.dataDir).flatMap((group) => [
          group,
          ...group.children().map((c) => group.child(c)),
        ])
        expect(counted.length).toBeGreaterThan(4)
        expect(counted.map((group) => group.refusedForks()).filter((count) => count > 0)).toEqual([])
        expect(await node.run('victim', ['echo', 'fine'])).toMatchObject({ stdout: 'fine\n' })
        expect(await told('greedy')).not.toContain('ForksRefused')
        for (const name of ['bomb', 'beside']) {
          await node.client.delete(Pods, { namespace: 'default', name })
          await node.untilGone(name)
        }
      },
      guardMs,
    )

    it(
      'that is never refused, of processes that start others without end, runs a few at a time, and its main process always',
      async () => {
        await using node = await nodeUnderTest(isolation, {
          pidsLimit: 1024,
        })
        await node.create('victim', running('exec sleep 600'))
        await node.create('crowd', running(crowd))
        await node.create('churn', running(churn))
        for (const name of ['victim', 'crowd']) await node.until(name, isReady)
        const told = async (name: string): Promise<string[]> => (await node.events(name)).map(({ reason }) => reason)
        await expect.poll(() => told('churn'), { timeout: guardMs }).toContain('ForksSlowed')
        // Turns last half a second: more than a hundred of the hundred and thirty are stopped at any moment.
        await expect
          .poll(() => podGroups(node.dataDir).map((group) => group.pids().filter(isStopped).length), {
            timeout: guardMs,
            interval: 20,
          })
          .toContainEqual(expect.toSatisfy((stopped: number) => stopped > 100))
        expect(await node.run('victim', ['echo', 'fine'])).toMatchObject({ stdout: 'fine\n' })
        expect(await told('crowd')).toEqual(expect.not.arrayContaining(['ForksSlowed']))
        await node.client.delete(Pods, { namespace: 'default', name: 'churn' })
        await node.untilGone('churn')
      },
      guardMs,
    )
  },
)

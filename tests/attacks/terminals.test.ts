import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { bubblewrapIsolation } from '@corral/node'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { machineTerminals } from '../../packages/node/src/cradle/server/scarce-watch.js'
import {
  compiledSupervisor,
  hasBubblewrap,
  openWorkbench,
  type Workbench,
} from '../../packages/node/src/isolation/workbench.test-suite.js'
import { isReady, nodeUnderTest } from '../node/node-under-test.js'

const canRun = hasBubblewrap && process.getuid?.() === 0 && existsSync('/usr/bin/python3')
const guardMs = 240_000

/** Opens terminals until there are none, and keeps them. */
const takeAll = `exec python3 -c '
import os, time
kept = []
try:
    while True: kept.append(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
except OSError: time.sleep(600)'`
const takeOne = ['python3', '-c', 'import os; os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY); print("got one")']

const supervisors = [
  { supervisor: 'compiled', isHere: compiledSupervisor() !== undefined },
  { supervisor: 'Node', isHere: true },
]

describe.skipIf(!canRun).each(supervisors.filter(({ isHere }) => isHere))(
  'all terminals of the machine ($supervisor supervisor; bubblewrap, root, Python)',
  ({ supervisor }) => {
    let bench: Workbench | undefined
    beforeAll(() => {
      bench = supervisor === 'Node' ? openWorkbench('bubblewrap + Node supervisor') : undefined
    })
    afterAll(() => bench?.[Symbol.asyncDispose]())

    it(
      'taken by one pod are given back, and it is told so; others open one again',
      async () => {
        await using node = await nodeUnderTest((dataDir) =>
          bubblewrapIsolation({
            dataDir,
            ...(bench ? { supervisorPath: null, supervisorScript: join(bench.dataDir, 'node-supervisor.mjs') } : {}),
          }),
        )
        const running = (script: string) => ({
          containers: [{ name: 'main', image: 'busybox', command: ['sh', '-c', script] }],
        })
        await node.create('victim', running('exec sleep 600'))
        await node.until('victim', isReady)
        await node.create('taker', running(`(${takeAll}) & exec sleep 600`))
        const reasons = async (): Promise<string[]> => (await node.events('taker')).map(({ reason }) => reason)
        await expect.poll(reasons, { timeout: guardMs }).toContain('TerminalsTaken')
        await expect
          .poll(() => node.run('victim', takeOne), { timeout: guardMs })
          .toMatchObject({ stdout: 'got one\n' })
        const isScarce = (): boolean => machineTerminals().used * 2 >= machineTerminals().all
        await expect.poll(isScarce, { timeout: guardMs }).toBe(false)
        expect((await node.until('taker', isReady)).status?.phase).toBe('Running')
      },
      guardMs,
    )
  },
)

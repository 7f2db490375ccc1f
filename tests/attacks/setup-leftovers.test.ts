import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  compiledSupervisor,
  hasBubblewrap,
  openWorkbench,
  type Variant,
  type Workbench,
} from '../../packages/node/src/isolation/workbench.test-suite.js'
import { endSetupScript, listProcessesScript } from '../../packages/tasks/src/environment/setup-processes.js'

const variants: { variant: Variant; isHere: boolean }[] = [
  { variant: 'bubblewrap + compiled supervisor', isHere: hasBubblewrap && compiledSupervisor() !== undefined },
  { variant: 'bubblewrap + Node supervisor', isHere: hasBubblewrap },
]
const guardMs = 240_000

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
/** Which of the processes that sleep for so long are there. */
const sleepers = `for n in 7001 7002 7003 7004 7005; do pgrep -f " $n\\$" > /dev/null && printf '%s ' $n; done; echo`
const untilThere = (pattern: string): string => `until pgrep -f ${quoted(pattern)} > /dev/null; do sleep 0.05; done`

/** Plays the daemon: a service, then set-up with everything it can leave, then the end of it, each by a shell of its own. */
const played = `
setsid sh -c 'while :; do sleep 7001; done' > /dev/null 2>&1 < /dev/null &
${untilThere('^sleep 7001')}
kept=$(sh -c ${quoted(listProcessesScript)} | tr '\\n' ' ')
pkill -f '^sleep 7001'
odd="$HOME/sl) R 1 1
x"
cp "$(command -v sleep)" "$odd"
TOKEN=secret sh -c 'exec setsid sleep 7002 > /dev/null 2>&1 < /dev/null &'
TOKEN=secret env -i setsid sleep 7003 > /dev/null 2>&1 < /dev/null &
( env -i setsid sh -c 'sleep 7004 & exec true' > /dev/null 2>&1 < /dev/null & )
( env -i setsid "$odd" 7005 > /dev/null 2>&1 < /dev/null & )
for n in 7001 7002 7003 7004 7005; do until pgrep -f " $n\\$" > /dev/null; do sleep 0.05; done; done
printf 'marked: '; grep -lz '^TOKEN=' /proc/[0-9]*/environ 2> /dev/null | wc -l
printf 'before: '; ${sleepers}
CORRAL_KEPT="$kept" sh -c '/bin/sh -c "$0"; echo "ended $?"' ${quoted(endSetupScript)}
${untilThere('^sleep 7001')}
printf 'after: '; ${sleepers}
`

describe.each(variants.filter(({ isHere }) => isHere))('after set-up with secrets ($variant)', ({ variant }) => {
  let bench: Workbench
  beforeAll(() => {
    bench = openWorkbench(variant)
  })
  afterAll(() => bench[Symbol.asyncDispose]())

  it(
    'nothing of it goes on, with or without its environment, under any name and parent; a service does, with new workers',
    async () => {
      const cell = await bench.start('exec sleep 600')
      const { stdout, stderr } = await bench.run(cell, played)
      expect(stdout, stderr).toBe(
        ['marked: 1', 'before: 7001 7002 7003 7004 7005 ', 'ended 0', 'after: 7001 ', ''].join('\n'),
      )
      expect((await bench.run(cell, 'pgrep -c -f "^sleep 600"')).stdout).toBe('1\n')
      await cell.kill()
    },
    guardMs,
  )
})

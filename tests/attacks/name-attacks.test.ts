import { isFullSize } from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Cell, NetworkReport } from '../../packages/node/src/isolation/isolation.js'
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
const names = isFullSize ? 2000 : 200

/** Asks the pod's resolver for names given as lists of labels; says how each was answered: an address, or a code. */
const asking = (questions: readonly (readonly string[])[]): string => `node -e '
  const questions = ${JSON.stringify(questions).replaceAll("'", '')}, answers = {}
  const socket = require("dgram").createSocket("udp4")
  const ask = (index) => {
    const labels = questions[index].flatMap((label) => [label.length, ...Buffer.from(label, "latin1")])
    socket.send(Buffer.from([index >> 8, index & 255, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 1, 0, 1]), 53, "127.0.0.1")
  }
  let next = 0
  socket.on("message", (m) => {
    answers[m.readUInt16BE(0)] = m.readUInt16BE(6) ? [...m.subarray(-4)].join(".") : "code " + (m.readUInt16BE(2) & 15)
    if (Object.keys(answers).length === questions.length) { console.log(Object.values(answers).join("\\n")); socket.close() }
    else if (next < questions.length) ask(next++)
  })
  while (next < Math.min(16, questions.length)) ask(next++)
'`

describe.each(variants)('names a sandbox asks for ($variant)', ({ variant, isHere }) => {
  describe.skipIf(!isHere)('with bubblewrap installed', () => {
    let bench: Workbench
    let cell: Cell
    const reports: NetworkReport[] = []

    beforeAll(async () => {
      bench = openWorkbench(variant, { openFiles: 512 })
      bench.isolation.watchNetwork((report) => reports.push(report))
      cell = await bench.start('exec sleep 600', { pod: { egress: [{ host: '*.example.org', port: 443 }] } })
    }, guardMs)
    afterAll(() => bench[Symbol.asyncDispose](), guardMs)

    const answers = async (...questions: string[][]): Promise<string[]> =>
      (await bench.run(cell, asking(questions))).stdout.trim().split('\n')

    it.each([
      { what: 'a NUL, where a resolver stops reading', labels: ['10.1.2.3\0', 'example', 'org'] },
      { what: 'a dot within a label', labels: ['10.1.2.3', 'example.org'] },
      { what: 'another name in front of a line break', labels: ['evil.com\n', 'example', 'org'] },
      { what: 'a URL’s separator', labels: ['evil.com/', 'example', 'org'] },
    ])(
      'a wildcard opens no name with $what',
      async ({ labels }) => {
        expect(await answers(labels)).toEqual(['code 3'])
      },
      guardMs,
    )

    it(
      'the same wildcard opens a name below it',
      async () => {
        expect(await answers(['ok', 'example', 'org'])).toEqual([expect.stringMatching(/^198\.18\./)])
      },
      guardMs,
    )

    it(
      'a name that is refused is reported with its count, in no more words than host names have',
      async () => {
        await answers(['packages', 'example', 'com'], ['packages', 'example', 'com'], ['bad\0', 'example', 'com'])
        await until('both questions are told', () => reports.at(-1)?.refused[0]?.count === 2, guardMs)
        expect(reports.at(-1)?.refused).toMatchObject([
          { host: 'packages.example.com', reason: 'NotAllowed', count: 2 },
        ])
      },
      guardMs,
    )

    it(
      'thousands of names under a wildcard end at a limit and leave the platform what it needs',
      async () => {
        const asked = Array.from({ length: names }, (_, index) => [`n${index}`, 'example', 'org'])
        const answered = await answers(...asked)
        const opened = answered.filter((answer) => answer.startsWith('198.18.'))
        expect(answered).toHaveLength(names)
        expect(opened.length).toBeGreaterThan(4)
        expect(opened.length).toBeLessThan(100)
        await until('the limit is told', () => JSON.stringify(reports.at(-1)).includes('TooManyNames'), guardMs)
        const fresh = await bench.start('exec sleep 600', { pod: { egress: [{ host: 'a.example', port: 443 }] } })
        expect(await bench.run(fresh, 'echo fine')).toMatchObject({ stdout: 'fine\n' })
      },
      guardMs,
    )
  })
})

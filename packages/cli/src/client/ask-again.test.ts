import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, it } from 'vitest'

const asked = new URL('./ask-follow-up.ts', import.meta.url).href
const program = `import { ask } from ${JSON.stringify(asked)}
const answers = []
for (const question of ['one? ', 'two? ', 'three? ']) answers.push(await ask(question))
console.log(JSON.stringify(answers))`

it('a program that asks again waits for the answer, though nothing else keeps it', async () => {
  const runtime = ['--conditions', 'corral-source', '--import', import.meta.resolve('tsx'), '--input-type=module']
  const child = spawn(process.execPath, [...runtime, '-e', program], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  child.stdin.on('error', () => undefined)
  let shown = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text
    // After a turn of the event loop of its own: a program that does not wait has ended by then.
    for (const [question, answer] of [
      ['one? ', 'first\n'],
      ['two? ', 'second\n'],
      ['three? ', '\n'],
    ] as const)
      if (text.includes(question)) setTimeout(() => child.stdin.write(answer), 200)
  })
  expect((await ended)[0], shown).toBe(0)
  expect(shown).toContain('["first","second",null]')
})

import { spawn } from '@lydell/node-pty'
import { describe, expect, it } from 'vitest'
import { readBeforeDestroy } from './read-before-destroy.js'

describe('the last output of a terminal', () => {
  it.each<{ what: string; script: string; says: string }>([
    { what: 'a command', script: 'read line; echo last', says: 'last\r\n' },
    {
      what: 'one that leaves another behind, which keeps it open',
      script: 'read line; sleep 5 & echo last',
      says: 'last\r\n',
    },
    {
      what: 'one that says much',
      script: 'read line; head -c 3000 /dev/zero | tr "\\0" x; echo last',
      says: 'xlast\r\n',
    },
  ])(
    'is not lost where $what ended while reading was paused: the library closes it soon after',
    async ({ script, says }) => {
      const pty = spawn('/bin/sh', ['-c', `stty -echo; echo begin; ${script}`], { encoding: null })
      let output = ''
      const take = (data: string | Uint8Array): void => {
        output += Buffer.from(data as Uint8Array).toString('latin1')
      }
      pty.onData(take)
      readBeforeDestroy(pty, take)
      const exited = new Promise((resolve) => pty.onExit(resolve))
      await expect.poll(() => output).toContain('begin\r\n')
      pty.pause()
      pty.write('go\r')
      await exited
      expect(output.endsWith(says), output.slice(-60)).toBe(true)
    },
  )
})

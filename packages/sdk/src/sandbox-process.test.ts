import { describe, expect, it } from 'vitest'
import type { ProcessEvent, RuntimeProcess } from './runtime/sandbox-runtime.js'
import { SandboxError } from './sandbox-error.js'
import { SandboxProcess } from './sandbox-process.js'

const piece = new Uint8Array(64 * 1024)
const pieces = 64

/** A command that writes four megabytes, told as fast as they are taken; `isFull` resolves when they are not taken any more. */
function writer(streams: readonly ('stdout' | 'stderr')[] = ['stdout']) {
  let sent = 0
  async function* events(): AsyncGenerator<ProcessEvent> {
    for (let index = 0; index < pieces; index += 1) {
      const stream = streams[index % streams.length] ?? 'stdout'
      yield { type: 'data', stream, data: piece, offset: index * piece.length }
      sent = index + 1
    }
    yield { type: 'exit', exitCode: 0 }
  }
  const unused = async () => {}
  const running: RuntimeProcess = {
    id: 'one',
    events: events(),
    write: unused,
    end: unused,
    kill: unused,
    resize: unused,
  }
  const process = new SandboxProcess(['yes'], Promise.resolve(running), {})
  const isFull = async () => {
    for (let before = -1; before !== sent || sent === 0; ) {
      before = sent
      for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    }
    expect(sent).toBeLessThan(pieces)
  }
  return { process, isFull }
}

async function bytesOf(output: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0
  for await (const chunk of output) bytes += chunk.length
  return bytes
}

describe('a command that is far ahead before anybody reads', () => {
  it('is read to its end on one stream, without the other', async () => {
    const { process, isFull } = writer()
    await isFull()
    expect(await bytesOf(process.stdout)).toBe(pieces * piece.length)
    expect(await process.exitCode).toBe(0)
  })

  it('is read to its end on both streams', async () => {
    const { process, isFull } = writer(['stdout', 'stderr'])
    await isFull()
    const both = await Promise.all([bytesOf(process.stdout), bytesOf(process.stderr)])
    expect(both).toEqual([(pieces / 2) * piece.length, (pieces / 2) * piece.length])
  })

  it('is iterated to its end, in order', async () => {
    const { process, isFull } = writer(['stdout', 'stderr'])
    await isFull()
    let next = 0
    for await (const { offset, data } of process) {
      expect(offset).toBe(next)
      next += data.length
    }
    expect(next).toBe(pieces * piece.length)
  })

  it('is awaited with all of its output', async () => {
    const { process, isFull } = writer()
    await isFull()
    expect((await process).stdout.length).toBe(pieces * piece.length)
  })

  it('ends where only its exit code is asked for', async () => {
    const { process, isFull } = writer(['stdout', 'stderr'])
    await isFull()
    expect(await process.exitCode).toBe(0)
  })
})

it('a command is caught and followed like a promise, as callers that chain write it', async () => {
  const lost = new SandboxProcess(['true'], Promise.reject(new Error('no line')), {})
  let isOver = false
  const caught = await lost.catch((error: unknown) => (error as Error).message)
  expect(caught).toMatch('no line')
  const result = await writer().process.finally(() => {
    isOver = true
  })
  expect(isOver).toBe(true)
  expect(result.exitCode).toBe(0)
})

describe('a command whose sandbox cannot be reached when its time is over', () => {
  /** Runs for ever, until a kill gets through, which the first `failures` do not. */
  function unreachable(failures: number) {
    let end = () => {}
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    let kills = 0
    async function* events(): AsyncGenerator<ProcessEvent> {
      await ended
      yield { type: 'exit', exitCode: 137 }
    }
    const kill = async () => {
      kills += 1
      if (kills <= failures) throw new SandboxError('ConnectionLost', 'connect ECONNREFUSED')
      end()
    }
    const unused = async () => {}
    const running: RuntimeProcess = { id: 'one', events: events(), write: unused, end: unused, kill, resize: unused }
    return { running, ended }
  }

  it('was waited for without end', async () => {
    const { running } = unreachable(Number.POSITIVE_INFINITY)
    await expect(new SandboxProcess(['sleep'], Promise.resolve(running), { timeoutMs: 5 })).rejects.toMatchObject({
      code: 'Timeout',
      message: expect.stringContaining('the sandbox does not answer, so the command may still run'),
    })
  })

  it('is killed as soon as it can be reached again', async () => {
    const { running, ended } = unreachable(2)
    await expect(new SandboxProcess(['sleep'], Promise.resolve(running), { timeoutMs: 5 })).rejects.toMatchObject({
      code: 'Timeout',
    })
    await ended
  })

  it('is given up also where it could not be started in that time', async () => {
    await expect(new SandboxProcess(['sleep'], new Promise(() => {}), { timeoutMs: 5 })).rejects.toMatchObject({
      code: 'Timeout',
    })
  })
})

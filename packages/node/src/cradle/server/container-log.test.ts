import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { ContainerLog } from './container-log.js'

const directory = mkdtempSync(join(tmpdir(), 'corral-log-'))
afterAll(() => rmSync(directory, { recursive: true }))
const nowMs = (): number => Date.UTC(2030, 0, 2, 3, 4, 5, 6)
const withoutTime = (text: string): string[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => line.slice(line.indexOf(' ') + 1))

describe('ContainerLog', () => {
  it('writes times that strictly increase even within a millisecond', () => {
    const path = join(directory, 'time.log')
    const log = new ContainerLog(path, { nowMs })
    log.write('stdout', Buffer.from('a\nb\n'))
    log.close()
    expect(readFileSync(path, 'utf8')).toBe(
      '2030-01-02T03:04:05.006000000Z stdout F a\n2030-01-02T03:04:05.006000001Z stdout F b\n',
    )
  })

  it('joins pieces of a line and keeps the streams apart', () => {
    const path = join(directory, 'pieces.log')
    const log = new ContainerLog(path, { nowMs })
    log.write('stdout', Buffer.from('he'))
    log.write('stderr', Buffer.from('oops\n'))
    log.write('stdout', Buffer.from('llo\nrest'))
    log.close()
    expect(withoutTime(readFileSync(path, 'utf8'))).toEqual(['stderr F oops', 'stdout F hello', 'stdout P rest'])
  })

  it('cuts very long lines into parts that join to the line again', () => {
    const path = join(directory, 'long.log')
    const log = new ContainerLog(path, { nowMs })
    const line = 'x'.repeat(40_000)
    log.write('stdout', Buffer.from(`${line}\n`))
    log.close()
    const parts = withoutTime(readFileSync(path, 'utf8'))
    expect(parts.map((part) => part.slice(0, 8))).toEqual(['stdout P', 'stdout P', 'stdout F'])
    expect(parts.map((part) => part.slice(9)).join('')).toBe(line)
  })

  it('keeps one older file when it grows beyond its size', () => {
    const path = join(directory, 'rotated.log')
    const log = new ContainerLog(path, { nowMs, rotateAtBytes: 200 })
    for (let i = 0; i < 20; i++) log.write('stdout', Buffer.from(`line ${i}\n`))
    log.close()
    const [current, older] = [readFileSync(path, 'utf8'), readFileSync(`${path}.1`, 'utf8')]
    expect(current.length).toBeLessThanOrEqual(200)
    expect(withoutTime(older + current).at(-1)).toBe('stdout F line 19')
  })

  it('loses lines, not the container, where it cannot write', () => {
    const log = new ContainerLog(join(directory, 'time.log', 'not-a-directory', 'x.log'))
    expect(() => log.write('stdout', Buffer.from('a\n'))).not.toThrow()
    expect(log.lostLines).toBe(1)
  })
})

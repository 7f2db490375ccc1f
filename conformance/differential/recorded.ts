import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { Context } from '../harness/context.js'

/** What the real server says, one answer a line in a file, written by a run on it with `CORRAL_RECORD_ANSWERS=1`. */
export class Recorded<T> {
  private readonly file: URL
  private readonly wanted: ReadonlyMap<string, T>
  private readonly isRecording: boolean
  private readonly said: string[] = []
  private readonly differences: string[] = []

  constructor(t: Context, name: string) {
    this.file = new URL(name, import.meta.url)
    this.isRecording = process.env.CORRAL_RECORD_ANSWERS === '1' && !t.isEmbedded
    const lines = existsSync(this.file) ? readFileSync(this.file, 'utf8').trim().split('\n') : []
    this.wanted = new Map(lines.map((line) => JSON.parse(line) as [string, T])) // as `finish` writes them
  }

  compare(title: string, got: T, isSame: (wanted: T, got: T) => boolean = isDeepStrictEqual): void {
    const wanted = this.wanted.get(title)
    this.said.push(JSON.stringify([title, got]))
    if (this.isRecording || (wanted !== undefined && isSame(wanted, got))) return
    this.differences.push(`${title}\n  wanted ${JSON.stringify(wanted)}\n  got    ${JSON.stringify(got)}`)
  }

  /** Throws when anything was different; writes the file where that is the purpose of the run. */
  finish(): void {
    if (this.isRecording) writeFileSync(this.file, `${this.said.join('\n')}\n`)
    const { length } = this.differences
    if (length > 0) throw new Error(`${length} differences\n${this.differences.slice(0, 5).join('\n')}`)
  }
}

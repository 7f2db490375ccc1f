/** One entry of a container log: `<time> stdout|stderr F|P <text>`. */
export interface CriEntry {
  time: string
  stream: 'stdout' | 'stderr'
  /** False for a piece of a line that goes on in the next entry. */
  isLineEnd: boolean
  text: Buffer
}

const space = 0x20

/** Takes one line (without its newline) apart; undefined where it is not in the format, as after a crash mid-write. */
export function parseCriLine(line: Buffer): CriEntry | undefined {
  const first = line.indexOf(space)
  const second = line.indexOf(space, first + 1)
  if (first <= 0 || second < 0) return undefined
  const third = line.indexOf(space, second + 1)
  const stream = line.toString('latin1', first + 1, second)
  const tag = line.toString('latin1', second + 1, third < 0 ? line.length : third)
  if ((stream !== 'stdout' && stream !== 'stderr') || !/^[FP](:|$)/.test(tag)) return undefined
  const text = third < 0 ? Buffer.alloc(0) : line.subarray(third + 1)
  return { time: line.toString('latin1', 0, first), stream, isLineEnd: tag[0] === 'F', text }
}

export interface CriFilter {
  sinceMs?: number
  timestamps: boolean
}

/** Turns stored entries back into what the container wrote, from bytes that may end anywhere. */
export class CriDecoder {
  #rest: Buffer = Buffer.alloc(0)
  #isMidLine = false
  constructor(private readonly filter: CriFilter) {}

  /** The output contained in these bytes; an unfinished entry waits for the next call. */
  push(bytes: Buffer): Buffer {
    const pieces: Buffer[] = []
    let data = this.#rest.length > 0 ? Buffer.concat([this.#rest, bytes]) : bytes
    for (let end = data.indexOf(0x0a); end >= 0; end = data.indexOf(0x0a)) {
      this.#entry(data.subarray(0, end), pieces)
      data = data.subarray(end + 1)
    }
    this.#rest = data
    return Buffer.concat(pieces)
  }

  #entry(line: Buffer, pieces: Buffer[]): void {
    const entry = parseCriLine(line)
    if (!entry) return
    const { sinceMs } = this.filter
    if (sinceMs !== undefined && Date.parse(entry.time) < sinceMs) return
    if (this.filter.timestamps && !this.#isMidLine) pieces.push(Buffer.from(`${entry.time} `))
    pieces.push(entry.text)
    if (entry.isLineEnd) pieces.push(Buffer.from('\n'))
    this.#isMidLine = !entry.isLineEnd
  }
}

import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { SnapshotAttachment } from '../../isolation/isolation.js'
import { IsolationError } from '../../isolation/isolation-error.js'
import { LineReader } from '../protocol/line-reader.js'
import type { SupervisorProgram } from '../protocol/messages.js'
import { supervisorOf } from './side-processes.js'

export interface HolderInput {
  supervisor: SupervisorProgram
  attachment: SnapshotAttachment
  /** The host's uid of the pod. */
  hostUid: number
  /** The pod's user namespace, without root. */
  userFd: number | undefined
}

const joinedUserFd = 3
/** How the helper says that the kernel cannot, see `native/attach.c`. */
const cannotStatus = 69
const answerMs = 60_000

/**
 * The overlays of one pod, held by a small process of their own: they go with it, and every cell of the pod gets the same
 * ones. Where this machine cannot make them `start` rejects with `Unsupported`.
 */
export class SnapshotHolder {
  readonly #child: ChildProcess
  readonly #lines = new LineReader()
  readonly #waiting: { resolve(line: string): void; reject(error: Error): void }[] = []
  readonly #exited: Promise<void>
  #problem = ''
  #isGone = false
  /** One question at a time. */
  #queue: Promise<unknown> = Promise.resolve()

  private constructor(program: string, { attachment, hostUid, userFd }: HolderInput) {
    const join = userFd === undefined ? [] : ['--join-user', String(joinedUserFd)]
    const trees = attachment.trees.flatMap(({ source, directory, target }) => [source, directory, target])
    const args = ['attach', ...join, String(attachment.ownerUid), String(hostUid), ...trees]
    this.#child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe', userFd ?? 'ignore'], env: {}, cwd: '/' })
    this.#child.stdin?.on('error', () => {
      // It has ended; `close` says why.
    })
    this.#child.stdout?.on('data', (chunk: Buffer) => {
      for (const line of this.#lines.take(chunk)) this.#waiting.shift()?.resolve(line)
    })
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#problem += chunk.toString()
    })
    this.#exited = new Promise((resolve) => {
      const end = (status: number | null): void => {
        this.#isGone = true
        const why = this.#problem.trim().replace(/^attach: /, '') || 'the helper ended'
        const error = new IsolationError(status === cannotStatus ? 'Unsupported' : 'StartFailed', `snapshot: ${why}`)
        for (const { reject } of this.#waiting.splice(0)) reject(error)
        resolve()
      }
      this.#child.once('error', (error) => {
        this.#problem += error.message
        end(null)
      })
      this.#child.once('close', end)
    })
  }

  static async start(input: HolderInput): Promise<SnapshotHolder> {
    const { supervisor, attachment, hostUid } = input
    if (supervisor.kind !== 'native')
      throw new IsolationError('Unsupported', 'the compiled supervisor is missing; install a C compiler and run set-up')
    for (const tree of attachment.trees) makeDirectories(tree, hostUid)
    const holder = new SnapshotHolder(supervisor.path, input)
    await holder.#answer()
    return holder
  }

  get isGone(): boolean {
    return this.#isGone
  }

  /** Puts the trees into the cell below this launcher. Safe to repeat. */
  async attach(launcher: number): Promise<void> {
    const turn = this.#queue.then(async () => {
      const cell = supervisorOf(launcher)
      if (!cell) throw new IsolationError('NotRunning', 'the cell has ended')
      if (this.#isGone)
        throw new IsolationError('StartFailed', `snapshot: ${this.#problem.trim() || 'the helper is gone'}`)
      this.#child.stdin?.write(`${cell.pid} ${cell.startTime}\n`)
      const line = await this.#answer()
      if (line !== 'ok') throw new IsolationError('StartFailed', `snapshot: ${line.replace(/^error /, '')}`)
    })
    this.#queue = turn.catch(() => undefined)
    await turn
  }

  /** Settles when nothing of it is left but what is in cells. */
  async close(): Promise<void> {
    this.#child.stdin?.end()
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), 5_000)
    await this.#exited
    clearTimeout(timer)
  }

  #answer(): Promise<string> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#child.kill('SIGKILL'), answerMs)
      const settle =
        <T>(next: (value: T) => void) =>
        (value: T): void => {
          clearTimeout(timer)
          next(value)
        }
      this.#waiting.push({ resolve: settle(resolve), reject: settle(reject) })
      if (this.#isGone) this.#waiting.pop()?.reject(new IsolationError('StartFailed', 'snapshot: the helper is gone'))
    })
  }
}

/**
 * Made once and kept for the life of the pod: the upper directory has what the pod wrote. Its root stands for the tree's, so
 * it gets that one's mode.
 */
function makeDirectories({ source, directory }: SnapshotAttachment['trees'][number], hostUid: number): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const isNew = !readdirSync(directory).includes('upper')
  for (const name of ['lower', 'work', 'mount']) mkdirSync(join(directory, name), { recursive: true, mode: 0o700 })
  if (!isNew) return
  const upper = join(directory, 'upper')
  mkdirSync(upper)
  chmodSync(upper, statSync(source).mode & 0o1777)
  if (process.getuid?.() === 0) chownSync(upper, hostUid, hostUid)
}

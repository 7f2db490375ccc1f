import { expect, it } from 'vitest'
import type { RuntimeProcess } from './runtime/sandbox-runtime.js'
import { type HandleParts, SandboxHandle } from './sandbox-handle.js'
import { Telemetry } from './telemetry.js'

/** A sandbox that writes down what is started in it. */
function recordingSandbox(): { sandbox: SandboxHandle; started: string[]; typed: string[] } {
  const started: string[] = []
  const typed: string[] = []
  const write = async (data: Uint8Array): Promise<void> => void typed.push(Buffer.from(data).toString())
  const end = async (): Promise<void> => void typed.push('end of file')
  const note = (argv: readonly string[]): RuntimeProcess => {
    started.push(argv.join(' '))
    return { id: 'x', events: ended(), write, end, kill: done, resize: done }
  }
  const runtime = {
    start: ({ argv }: { argv: readonly string[] }) => note(argv),
    startDurable: async (_id: string, { argv }: { argv: readonly string[] }) => note(argv),
    attach: () => note(['attached']),
  }
  const link = { runtime: async () => runtime, corral: async () => runtime }
  // Only what `exec` calls is here.
  const parts = { link, telemetry: new Telemetry() } as unknown as HandleParts
  return { sandbox: new SandboxHandle(parts, { name: 'box', namespace: 'default' }), started, typed }
}
const done = async (): Promise<void> => {}
async function* ended() {
  yield { type: 'exit' as const, exitCode: 0 }
}

it.each([{ background: false }, { background: true }])(
  'a command whose signal was aborted before ran all the same (background: $background)',
  async ({ background }) => {
    const { sandbox, started } = recordingSandbox()
    const call = sandbox.exec(['rm', '-r', '/work'], { background, signal: AbortSignal.abort() })
    await expect(call).rejects.toMatchObject({ code: 'Aborted' })
    await expect(call.id).rejects.toMatchObject({ code: 'Aborted' })
    expect(started).toEqual([])
  },
)

it.each([
  { input: 'a line\n', background: false, typed: ['a line\n', 'end of file'] },
  { input: 'half a line', background: true, typed: ['half a line', 'end of file', 'end of file'] },
])(
  'a command in a terminal never got its input "$input", and waited for ever',
  async ({ input, background, typed }) => {
    const recording = recordingSandbox()
    await recording.sandbox.exec(['cat'], { pty: true, stdin: input, background })
    await expect.poll(() => recording.typed).toEqual(typed)
  },
)

it('a process that starts in a terminal with bytes is refused, since they would be lost', async () => {
  const { sandbox, started } = recordingSandbox()
  const starting = sandbox.processes.start({ argv: ['cat'], pty: { columns: 80, rows: 24 }, stdin: Buffer.from('x') })
  await expect(starting).rejects.toMatchObject({ code: 'Invalid', message: expect.stringMatching(/write\(\)/) })
  expect(started).toEqual([])
})

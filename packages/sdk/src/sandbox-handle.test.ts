import { expect, it } from 'vitest'
import type { RuntimeProcess } from './runtime/sandbox-runtime.js'
import { type HandleParts, SandboxHandle } from './sandbox-handle.js'
import { Telemetry } from './telemetry.js'

/** A sandbox that writes down what is started in it. */
function recordingSandbox(): { sandbox: SandboxHandle; started: string[] } {
  const started: string[] = []
  const note = (argv: readonly string[]): RuntimeProcess => {
    started.push(argv.join(' '))
    return { id: 'x', events: ended(), write: done, end: done, kill: done, resize: done }
  }
  const runtime = {
    start: ({ argv }: { argv: readonly string[] }) => note(argv),
    startDurable: async (_id: string, { argv }: { argv: readonly string[] }) => note(argv),
    attach: () => note(['attached']),
  }
  const link = { runtime: async () => runtime, corral: async () => runtime }
  // Only what `exec` calls is here.
  const parts = { link, telemetry: new Telemetry() } as unknown as HandleParts
  return { sandbox: new SandboxHandle(parts, { name: 'box', namespace: 'default' }), started }
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

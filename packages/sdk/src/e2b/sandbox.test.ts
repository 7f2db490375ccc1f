import { describe, expect, it } from 'vitest'
import type { AgentSandboxClient } from '../agent-sandbox-client.js'
import { SandboxError } from '../sandbox-error.js'
import type { SandboxProcess } from '../sandbox-process.js'
import { CommandHandle } from './commands.js'
import { Sandbox } from './sandbox.js'

/** A cluster with one sandbox, whose variables cannot be bound where `failure` says so. */
function scriptedClient(failure?: Error): { client: AgentSandboxClient; left: Set<string> } {
  const left = new Set<string>()
  let isDetached = false
  const owned = {
    claimName: 'box',
    detach: () => {
      isDetached = true
    },
    [Symbol.asyncDispose]: async () => {
      if (!isDetached) left.delete('box')
    },
  }
  const handle = {
    bindEnv: async () => {
      if (failure) throw failure
    },
  }
  const create = async () => {
    left.add('box')
    return owned
  }
  const client = { sandboxes: { create, get: async () => handle } }
  // Only what `create` calls is here.
  return { client: client as unknown as AgentSandboxClient, left }
}

describe('a sandbox made through the surface of E2B', () => {
  it('lives on after its handle was given out', async () => {
    const { client, left } = scriptedClient()
    expect((await Sandbox.create('pool', { client, envs: { A: '1' } })).sandboxId).toBe('box')
    expect([...left]).toEqual(['box'])
  })

  it('is not left running where the caller never gets it', async () => {
    const { client, left } = scriptedClient(new SandboxError('ConnectionLost', 'the tunnel broke'))
    await expect(Sandbox.create('pool', { client, envs: { A: '1' } })).rejects.toThrow('the tunnel broke')
    expect([...left]).toEqual([])
  })
})

describe('a command run through the surface of E2B', () => {
  it('ends for its caller with what a callback of the caller threw', async () => {
    const mine = new Error('mine')
    async function* pieces() {
      yield { stream: 'stdout' as const, data: Buffer.from('x'), offset: 0 }
    }
    const process = { [Symbol.asyncIterator]: () => pieces(), exitCode: Promise.resolve(0) }
    const onStdout = () => {
      throw mine
    }
    await expect(new CommandHandle(1, process as unknown as SandboxProcess, { onStdout }).wait()).rejects.toBe(mine)
  })
})

import { ownerReferenceTo, SandboxClaims, Sandboxes, SandboxWarmPools } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { claim, condition, namespace, sandbox } from './cluster.js'
import { ref } from './objects.js'
import { type Passes, patchOf, refusal, refuse } from './passes.js'
import { assigned, boundTo, line, member, newClaim, readClaim, started } from './warm-claims.js'

/** As the claim's controller does it, just before it writes to the Sandbox. */
const assign = async (passes: Passes, name: string): Promise<void> => {
  const body = { metadata: { annotations: { [assigned]: name } } }
  await passes.client.patch(SandboxClaims, ref('c'), { type: 'merge', body })
}

describe('conflicts', () => {
  const sandboxPatches = (passes: Passes, name: string): number =>
    passes.writes.filter(({ what }) => what === `PATCH sandboxes/${name}`).length

  it('scenario 120: a conflict on the claim is settled in the same pass', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await newClaim(passes)
    passes.fault = refuse(patchOf('/sandboxclaims/c'), refusal(409, 'Conflict'), 1)
    expect(await passes.claim('c')).toEqual({})
    expect(await boundTo(passes)).toBe('a')
  })

  it('scenarios 121, 122: a conflict on the Sandbox is settled on that Sandbox and no other', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await member(passes, 'b')
    await newClaim(passes)
    const faults = [
      refuse(patchOf('/sandboxes/a'), refusal(409, 'Conflict'), 1),
      refuse(patchOf('/sandboxclaims/c'), refusal(409, 'Conflict'), 1),
    ]
    passes.fault = (request) => faults[0]?.(request) ?? faults[1]?.(request)
    expect(await passes.claim('c')).toEqual({})
    expect([sandboxPatches(passes, 'a'), sandboxPatches(passes, 'b')]).toEqual([2, 0])
    expect(await boundTo(passes)).toBe('a')
  })

  it('scenario 123: an old view costs one refused write per pass and changes nothing', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await newClaim(passes)
    await passes.refresh()
    await passes.claim('c', 'stale')
    const before = await readClaim(passes)
    const stale = passes.client.get(Sandboxes, ref('a'))
    passes.writes.length = 0
    for (let count = 0; count < 3; count += 1) await passes.claim('c', 'stale').catch(() => {})
    expect((await passes.client.get(Sandboxes, ref('a'))).metadata.resourceVersion).toBe(
      (await stale).metadata.resourceVersion,
    )
    expect((await readClaim(passes)).status).toEqual(before.status)
  })

  it('a sandbox whose creation was never answered goes once the claim has a warm one', async () => {
    await using passes = await started()
    await member(passes, 'a')
    const made = await newClaim(passes)
    await passes.claim('c')
    const own = sandbox('c')
    const metadata = { ...own.metadata, ownerReferences: [ownerReferenceTo(made, SandboxClaims)] }
    await passes.client.create(Sandboxes, { ...own, metadata })
    await passes.claim('c')
    expect(await passes.client.find(Sandboxes, ref('c'))).toBeUndefined()
    expect([await boundTo(passes), (await passes.client.get(Sandboxes, ref('a'))).metadata.name]).toEqual(['a', 'a'])
  })

  it('scenario 124: an assigned Sandbox that is gone frees the claim for another', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await newClaim(passes)
    await assign(passes, 'a')
    await member(passes, 'spare')
    await passes.refresh()
    await passes.client.delete(Sandboxes, ref('a'))
    await expect(passes.claim('c', 'stale')).rejects.toMatchObject({ code: 'AdoptionConflict' })
    const { metadata, ...claimed } = await readClaim(passes)
    expect(metadata.annotations?.[assigned]).toBeUndefined()
    expect(condition(claimed, 'Ready')).toMatchObject({
      reason: 'AdoptionConflict',
      message:
        'adoption write conflict: sandbox a deleted before adoption completed; the next pass retries from a converged view',
    })
    expect(sandboxPatches(passes, 'spare')).toBe(0)
    await passes.claim('c')
    expect(await boundTo(passes)).toBe('spare')
  })

  it("scenario 125: endless conflicts are reported without the server's text, and the assignment is kept", async () => {
    await using passes = await started()
    await member(passes, 'a')
    await newClaim(passes)
    passes.fault = refuse(patchOf('/sandboxes/a'), refusal(409, 'Conflict', 'the object has been modified'))
    await expect(passes.claim('c')).rejects.toMatchObject({ code: 'AdoptionConflict' })
    const after = await readClaim(passes)
    expect(after.metadata.annotations?.[assigned]).toBe('a')
    expect(condition(after, 'Ready')?.message).toContain('(conflicting concurrent write); the next pass retries')
    expect(condition(after, 'Ready')?.message).not.toContain('has been modified')
    passes.fault = undefined
    await passes.claim('c')
    expect(await boundTo(passes)).toBe('a')
  })

  it('scenario 126: a clean-up that fails says so, keeps the assignment, and heals later', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await newClaim(passes)
    await assign(passes, 'a')
    await passes.refresh()
    await passes.claim('nobody', 'stale')
    await passes.client.delete(Sandboxes, ref('a'))
    passes.fault = refuse(
      ({ method, path, body }) =>
        method === 'PATCH' && path.endsWith('/sandboxclaims/c') && JSON.stringify(body).includes('null'),
      refusal(500, 'InternalError', 'secret detail'),
    )
    await expect(passes.claim('c', 'stale')).rejects.toThrow('sandbox a deleted and reference cleanup failed')
    const after = await readClaim(passes)
    expect(after.metadata.annotations?.[assigned]).toBe('a')
    expect(condition(after, 'Ready')?.message).not.toContain('secret detail')
    passes.fault = undefined
    await passes.claim('c')
    expect((await readClaim(passes)).metadata.annotations?.[assigned]).toBeUndefined()
  })

  it('scenario 127: a stop in the middle is a stop, not a conflict, and leaves the assignment', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await newClaim(passes)
    passes.fault = (request) => {
      if (!patchOf('/sandboxes/a')(request)) return undefined
      passes.cancel(new Error('stopped'))
      return refusal(409, 'Conflict')
    }
    const failure = await passes.claim('c').catch((error: unknown) => error)
    expect(failure).not.toMatchObject({ code: 'AdoptionConflict' })
    const { metadata, status } = await readClaim(passes)
    expect([metadata.annotations?.[assigned], status]).toEqual(['a', undefined])
  })

  it('a member that fails to be taken is offered again', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await newClaim(passes)
    passes.fault = refuse(patchOf('/sandboxclaims/c'), refusal(500, 'InternalError'))
    await expect(passes.claim('c')).rejects.toMatchObject({ code: 'InternalError', status: 500 })
    expect(passes.warm.size(line)).toBe(1)
  })

  it('a crash between any two writes ends in the same binding', async () => {
    for (const diesAt of [1, 2, 3, 4]) {
      await using passes = await started()
      await member(passes, 'a')
      await member(passes, 'b')
      await newClaim(passes)
      let writes = 0
      passes.fault = ({ method }) => {
        if (method === 'GET') return undefined
        writes += 1
        return writes >= diesAt ? refusal(500, 'InternalError') : undefined
      }
      await passes.claim('c').catch(() => {})
      passes.fault = undefined
      passes.restart()
      await passes.claim('c')
      await passes.claim('c')
      const { items } = await passes.client.list(Sandboxes, { namespace })
      const owners = items.map((item) => item.metadata.ownerReferences?.[0]?.kind).sort()
      expect(owners, `died at write ${diesAt}`).toEqual(['SandboxClaim', 'SandboxWarmPool'])
      expect(condition(await readClaim(passes), 'Ready')?.status).toBe('True')
    }
  })
})

it('scenario 128: members and pools that go leave the queue', async () => {
  await using passes = await started()
  await member(passes, 'a')
  await member(passes, 'b')
  await passes.client.delete(Sandboxes, ref('a'))
  await passes.refresh()
  expect(passes.warm.size(line)).toBe(1)
  await passes.client.delete(SandboxWarmPools, ref('pool'))
  await passes.refresh()
  expect(passes.warm.size(line)).toBe(0)
})

describe('an assignment that another manager replaced', () => {
  it('survives a pass that still sees the old one, which led nowhere', async () => {
    await using passes = await started()
    await member(passes, 'a')
    await member(passes, 'b')
    const { metadata, ...rest } = claim('c')
    await passes.client.create(SandboxClaims, {
      ...rest,
      metadata: { ...metadata, annotations: { [assigned]: 'gone' } },
    })
    await passes.refresh()
    await assign(passes, 'b')

    await expect(passes.claim('c', 'stale')).rejects.toThrow('failed to remove stale sandbox reference')
    await passes.claim('c')

    expect((await passes.client.get(SandboxClaims, ref('c'))).metadata.annotations?.[assigned]).toBe('b')
    const { items } = await passes.client.list(Sandboxes, { namespace })
    const taken = items.filter((box) => box.metadata.ownerReferences?.[0]?.kind === 'SandboxClaim')
    expect(taken.map((box) => box.metadata.name)).toEqual(['b'])
  })
})

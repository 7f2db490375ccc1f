import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createProvider, type ProviderEvent, SandboxError } from '@corral/agent-sandbox-sdk'
import { type PlatformProcess, startPlatformProcess } from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

let platform: PlatformProcess

beforeAll(async () => {
  platform = await startPlatformProcess({ args: ['--agent', 'command'] })
})
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]()
})

describe('AgentSandboxProvider', () => {
  const provider = (type = 'agent-sandbox') =>
    createProvider(type, { kubeconfigPath: platform.kubeconfig, namespace: 'corral' })

  it('S2-U2 S2-D2 S2-I11 S2-I13 S2-M3: makes one sandbox per project, tells of it, and finds it again after a restart', async () => {
    const first = provider()
    const events: ProviderEvent['type'][] = []
    first.on(({ type }) => events.push(type))
    const config = { projectId: 'shop/front end', env: { STAGE: 'test' }, networkMode: 'none' } as const
    const [made, second] = await Promise.allSettled([first.create(config), first.create(config)])
    if (made.status === 'rejected') throw made.reason
    expect(second).toMatchObject({ status: 'rejected', reason: { code: 'AlreadyExists' } })
    await expect(provider().create(config)).rejects.toMatchObject({ code: 'AlreadyExists' })
    expect(events).toEqual(['sandbox:creating', 'sandbox:created', 'sandbox:started'])
    expect(await made.value.exec('sh', ['-c', 'echo $STAGE; exit 2'])).toEqual({
      exitCode: 2,
      stdout: 'test\n',
      stderr: '',
    })

    const later = provider('kubernetes')
    expect(await later.recover()).toEqual({ recovered: 1, removed: 0 })
    const found = await later.get('shop/front end')
    expect(found).toMatchObject({ id: made.value.id, projectId: 'shop/front end', status: 'running' })
    expect((await later.getById(made.value.id))?.containerId).toBe(made.value.containerId)
    expect(await later.getById('s-none')).toBeUndefined()
    await found?.touch()
    expect((await found?.getMetrics())?.memoryUsageMb).toBeGreaterThan(1)
    await found?.stop()
    await expect.poll(async () => (await later.list()).length).toBe(0)
    await Promise.all([first.close(), later.close()])
  })

  it('S2-I11: gives the sandbox the project and the mounts as copies, whatever lies in them', async () => {
    const local = mkdtempSync(join(tmpdir(), 'corral-project-'))
    mkdirSync(join(local, 'project', 'deep dir'), { recursive: true })
    writeFileSync(join(local, 'project', 'deep dir', 'ö\n.txt'), 'odd')
    symlinkSync('deep dir', join(local, 'project', 'link'))
    writeFileSync(join(local, 'run.sh'), '#!/bin/sh\necho ran', { mode: 0o755 })
    const mine = provider('embedded')
    const instance = await mine.create({
      projectId: 'copies',
      projectPath: join(local, 'project'),
      volumeMounts: [
        { hostPath: join(local, 'project'), containerPath: '/srv/data', readonly: true },
        { hostPath: join(local, 'run.sh'), containerPath: '/workspace/bin/run.sh', readonly: true },
      ],
    })
    const script = 'cat /workspace/link/ö*; readlink /workspace/link; cat /srv/data/link/ö*; /workspace/bin/run.sh'
    expect(await instance.exec('sh', ['-c', script])).toEqual({
      exitCode: 0,
      stdout: 'odddeep dir\noddran\n',
      stderr: '',
    })
    expect(
      (await instance.exec('sh', ['-c', 'echo inside > /srv/data/new && echo inside > /workspace/new'])).exitCode,
    ).toBe(0)
    expect(readdirSync(join(local, 'project')).sort()).toEqual(['deep dir', 'link'])
    await instance.stop()

    // What is refused inside leaves no sandbox.
    const refused = { hostPath: join(local, 'run.sh'), containerPath: '/proc/run.sh', readonly: true }
    await expect(mine.create({ projectId: 'copies-2', volumeMounts: [refused] })).rejects.toBeInstanceOf(SandboxError)
    expect(await mine.get('copies-2')).toBeUndefined()
    await mine.close()
    rmSync(local, { recursive: true })
  })

  it('S2-I12 S2-R2 S2-R3: streams commands and keeps terminals that outlive their client', async () => {
    const mine = provider('embedded')
    const instance = await mine.create({ projectId: 'terminals' })
    const stream = await instance.execStream({ cmd: 'sh', args: ['-c', 'echo out; echo err >&2; exit 3'], cwd: '/tmp' })
    let out = ''
    for await (const chunk of stream.stdout) out += String(chunk)
    expect([out, (await stream.wait()).exitCode]).toEqual(['out\n', 3])
    const endless = await instance.execStream({ cmd: 'sleep', args: ['1000'] })
    await endless.kill()
    expect((await endless.wait()).exitCode).toBe(137)

    await instance.createTmuxSession('main')
    await instance.createTmuxSession('main')
    await instance.sendKeysToTmux('main', 'echo $((40 + 2))-marker\n')
    const again = await provider().get('terminals')
    await expect.poll(() => again?.captureTmuxPane('main')).toContain('42-marker')
    expect(await again?.listTmuxSessions()).toEqual(['main'])
    await again?.killTmuxSession('main')
    await expect.poll(() => again?.listTmuxSessions()).toEqual([])
    await expect(again?.sendKeysToTmux('main', 'x')).rejects.toMatchObject({ code: 'ProcessExited' })

    // A name is free again once its session has ended.
    await instance.createTmuxSession('main')
    expect(await instance.listTmuxSessions()).toEqual(['main'])
    await again?.sendKeysToTmux('main', 'echo $((41 + 2))-second\n')
    await expect.poll(() => instance.captureTmuxPane('main')).toContain('43-second')
    expect(await instance.captureTmuxPane('main')).not.toContain('42-marker')
    await expect(instance.captureTmuxPane('main', 0)).rejects.toMatchObject({ code: 'Invalid' })
    for (const name of [undefined, 5, '', 'a b', '../x'])
      await expect(instance.createTmuxSession(name as string)).rejects.toMatchObject({ code: 'Invalid' })
    expect(await instance.listTmuxSessions()).toEqual(['main'])
    expect((await instance.getMetrics()).memoryLimitMb).toBeGreaterThan(0)

    const idle = await provider().get('terminals')
    await (await mine.client.sandboxes.get(instance.containerId)).suspend()
    await expect(idle?.exec('true')).rejects.toMatchObject({ code: 'SandboxNotReady' })
    await expect(idle?.getMetrics()).rejects.toMatchObject({ code: 'SandboxNotReady' })
    expect((await provider().get('terminals'))?.status).toBe('idle')
    await instance.stop()
    await mine.close()
  })

  it.each([
    { what: 'no project', config: { projectId: '' } },
    { what: 'more memory than there can be', config: { projectId: 'p', memoryMb: 40_000 } },
    { what: 'an id that is no label', config: { projectId: 'p', id: 'Not An Id' } },
  ])('refuses $what', async ({ config }) => {
    const refused = await provider()
      .create(config)
      .catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(SandboxError)
    expect(refused).toMatchObject({ code: 'Invalid' })
  })

  it('knows its health, and a type that does not exist', async () => {
    expect(await provider().healthCheck()).toMatchObject({ healthy: true, details: { crdRegistered: true } })
    expect(await provider().isImageAvailable('corral/daemon')).toBe(true)
    expect(() => createProvider('docker')).toThrow('there is no provider "docker"')
  })
})

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Environment, Environments, SandboxClaims, type Stored, snapshotAnnotation } from '@corral/resources'
import {
  gitRepository,
  isFullSize,
  type PlatformProcess,
  startPlatformProcess,
  type TemporaryDirectory,
  temporaryDirectory,
  waitUntil,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

let scratch: TemporaryDirectory
let platform: PlatformProcess
beforeAll(async () => {
  scratch = temporaryDirectory()
  platform = await startPlatformProcess()
})
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]()
  await scratch?.[Symbol.asyncDispose]()
})

async function environmentOf(repo: string): Promise<Stored<Environment> | undefined> {
  const kube = await platform.kube()
  const { items } = await kube.list(Environments, { namespace: 'corral' })
  return items.find(({ spec }) => spec.repository.url === repo)
}

const inState =
  (state: string) =>
  async (repo: string): Promise<boolean> =>
    (await environmentOf(repo))?.status?.build?.state === state

/** The command of set-up has begun in its sandbox: it waits for a file that is made afterwards. */
const settingUp = async (repo: string): Promise<boolean> => {
  const build = (await environmentOf(repo))?.status?.build
  if (!build?.podUid) return false
  return existsSync(join(platform.dataDir, 'pods', build.podUid, 'home', 'begun'))
}

const sealing = async (repo: string): Promise<boolean> => {
  const build = (await environmentOf(repo))?.status?.build
  const names = readdirSync(join(platform.dataDir, 'snapshots'))
  const name = `${(await environmentOf(repo))?.metadata.name}-${build?.number}`
  return names.some((each) => each.startsWith(`.sealing-${name}`) || each === name)
}

const attaching = async (repo: string): Promise<boolean> => {
  const name = (await environmentOf(repo))?.metadata.name ?? 'none'
  const kube = await platform.kube()
  const { items } = await kube.list(SandboxClaims, { namespace: 'corral' })
  return items.some(({ spec }) => spec.additionalPodMetadata?.annotations?.[snapshotAnnotation]?.startsWith(`${name}-`))
}

interface Row {
  when: string
  moment: (repo: string) => Promise<boolean>
  victim?: 'cradle'
  full?: boolean
}

const rows: Row[] = [
  { when: 'a build has begun', moment: inState('Starting'), full: true },
  { when: 'its sandbox is there', moment: inState('Running'), full: true },
  { when: 'set-up runs', moment: settingUp, full: true },
  { when: 'the snapshot is being sealed', moment: sealing },
  { when: 'the build is recorded', moment: inState('Succeeded'), full: true },
  { when: 'the snapshot is being attached', moment: attaching },
  { when: 'set-up runs, of the cradle', moment: settingUp, victim: 'cradle', full: true },
]

describe('kill -9', () => {
  let count = 0
  it.each(rows.filter(({ full }) => isFullSize || !full))(
    'when $when: the task ends well, with one environment that later tasks get',
    async ({ moment, victim }) => {
      const repo = await gitRepository(join(scratch.path, `repo-${++count}`), {
        '.gitignore': 'deps/\n',
        '.corral/setup': 'touch ~/begun; sleep 1; mkdir -p deps; echo built > deps/stamp\n',
      })
      const request = { repo: repo.path, task: 'Look', agent: { name: 'command' as const, command: 'cat deps/stamp' } }
      const id = await platform.api.create(request)
      await waitUntil('the moment', () => moment(repo.path), { intervalMs: 5 })
      if (victim === 'cradle')
        process.kill(Number(readFileSync(join(platform.dataDir, 'cradle', 'cradle.pid'), 'utf8')), 'SIGKILL')
      else {
        await platform.kill9()
        await platform.restart()
      }
      const task = await platform.api.untilEnded(id)
      expect(task, JSON.stringify(task)).toMatchObject({ status: 'SUCCEEDED' })
      await waitUntil('the environment to rest', async () => {
        const claims = await (await platform.kube()).list(SandboxClaims, { namespace: 'corral' })
        return (await environmentOf(repo.path))?.status?.build?.state === 'Succeeded' && claims.items.length === 0
      })
      const later = await platform.api.run(request)
      expect(later).toMatchObject({ status: 'SUCCEEDED' })
      const events = JSON.stringify(await platform.api.allEvents(later.id))
      expect(events).toContain('built')
      expect(events).toContain('set up already')
      expect(readdirSync(join(platform.dataDir, 'snapshots')).filter((name) => name.startsWith('.'))).toEqual([])
    },
  )

  if (isFullSize)
    it('while an environment is removed leaves nothing of it', async () => {
      const repo = await gitRepository(join(scratch.path, 'pruned'), { '.corral/setup': 'touch ~/x\n' })
      const request = { repo: repo.path, task: 'Look', agent: { name: 'command' as const, command: 'true' } }
      expect(await platform.api.run(request)).toMatchObject({ status: 'SUCCEEDED' })
      const { name } = (await environmentOf(repo.path))!.metadata
      const kube = await platform.kube()
      await kube.delete(Environments, { namespace: 'corral', name })
      await platform.kill9()
      await platform.restart()
      await waitUntil('it to be gone', async () => (await environmentOf(repo.path)) === undefined)
      expect(readdirSync(join(platform.dataDir, 'snapshots')).filter((each) => each.includes(name))).toEqual([])
      expect(await platform.api.run(request)).toMatchObject({ status: 'SUCCEEDED' })
    })
})

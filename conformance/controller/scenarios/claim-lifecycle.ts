import { deepStrictEqual } from 'node:assert/strict'
import {
  Pods,
  type SandboxClaim,
  SandboxClaims,
  Sandboxes,
  SandboxTemplates,
  SandboxWarmPools,
} from '@corral/resources'
import { holds } from '../harness/holds.js'
import { type Scenario, scenario } from '../harness/scenario.js'
import { conditionOf, type Scene } from '../harness/scene.js'
import { AGENTS, claim, inSeconds, pool, template } from './objects.js'

type Lifecycle = SandboxClaim['spec']['lifecycle']

async function claimWith(scene: Scene, lifecycle: Lifecycle, replicas = 0): Promise<void> {
  await scene.create(SandboxTemplates, template())
  await scene.create(SandboxWarmPools, pool('pool', replicas))
  if (replicas > 0) await scene.fullPool('pool', replicas)
  await scene.create(SandboxClaims, claim('claim', lifecycle ? { lifecycle } : {}))
}

/** Lets the claim expire in a moment, once it is where the scenario wants it; the manager must see the new time before. */
async function soon(scene: Scene): Promise<void> {
  await scene.rest()
  await scene.merge(SandboxClaims, 'claim', { spec: { lifecycle: { shutdownTime: inSeconds(4) } } })
}

export const claimLifecycleScenarios: readonly Scenario[] = [
  scenario('130', "a claim's condition speaks of its own generation", async (scene) => {
    await claimWith(scene, undefined)
    await scene.readyClaim('claim')
    await scene.merge(SandboxClaims, 'claim', { spec: { lifecycle: { shutdownTime: inSeconds(3_600) } } })
    await scene.until(SandboxClaims, 'claim', (object) => conditionOf(object, 'Ready')?.observedGeneration === 2)
    await scene.observe()
  }),

  scenario('132', 'a finished Sandbox finishes the claim, which waits for its time', async (scene) => {
    scene.fate('unready')
    await claimWith(scene, { ttlSecondsAfterFinished: 120 })
    await scene.ends('claim', 'succeeded')
    await scene.says(SandboxClaims, 'claim', 'True/PodSucceeded: Pod completed successfully', 'Finished')
    await scene.observe()
  }),

  scenario('133a', 'time is up after the finish, Retain: the Sandbox goes, the claim stays', async (scene) => {
    scene.fate('unready')
    await claimWith(scene, { ttlSecondsAfterFinished: 0 })
    await scene.ends('claim', 'failed')
    await scene.says(SandboxClaims, 'claim', 'False/ClaimExpired: Claim expired. Sandbox cleanup initiated.')
    await scene.gone(Sandboxes, 'claim')
    await scene.observe()
  }),

  scenario('133b', 'time is up after the finish, Delete: nothing stays', async (scene) => {
    scene.fate('unready')
    await claimWith(scene, { ttlSecondsAfterFinished: 1, shutdownPolicy: 'Delete' })
    await scene.ends('claim', 'succeeded')
    await scene.gone(SandboxClaims, 'claim')
    await scene.gone(Pods, 'claim')
    await scene.observe()
  }),

  scenario('136a', 'past its time, Retain: the cold Sandbox goes, the claim stays', async (scene) => {
    await claimWith(scene, { shutdownPolicy: 'Retain' })
    await scene.readyClaim('claim')
    await soon(scene)
    await scene.reason(SandboxClaims, 'claim', 'ClaimExpired')
    await scene.gone(Sandboxes, 'claim')
    await scene.gone(Pods, 'claim')
    await scene.observe('expired')
    await scene.merge(SandboxClaims, 'claim', { spec: { lifecycle: null } })
    await scene.readyClaim('claim')
    await scene.observe('revived')
  }),

  scenario('136b', 'past its time, Retain: the adopted Sandbox goes, the claim stays', async (scene) => {
    await claimWith(scene, undefined, 1)
    const name = (await scene.readyClaim('claim')).status?.sandbox?.name ?? ''
    await soon(scene)
    await scene.reason(SandboxClaims, 'claim', 'ClaimExpired')
    await scene.gone(Sandboxes, name)
    await scene.gone(Pods, name)
    await scene.fullPool('pool', 1)
    await scene.observe()
  }),

  scenario('136c', 'past its time: a Sandbox that is not its own survives', async (scene) => {
    await scene.create(SandboxTemplates, template())
    await scene.create(SandboxWarmPools, pool('pool', 0))
    await scene.create(Sandboxes, {
      apiVersion: `${AGENTS}/v1beta1`,
      kind: 'Sandbox',
      metadata: { name: 'claim' },
      spec: { podTemplate: { spec: { containers: [{ name: 'main', image: 'busybox:1' }] } } },
    })
    await scene.create(SandboxClaims, claim('claim', { lifecycle: { shutdownTime: inSeconds(-5) } }))
    await scene.says(
      SandboxClaims,
      'claim',
      'False/ClaimExpired: Claim expired. sandbox not owned by this claim: sandbox "claim" is not owned by claim "claim"; deletion skipped.',
    )
    await scene.readySandbox('claim')
    await scene.observe()
    holds(await scene.find(Sandboxes, 'claim'), 'find(Sandboxes, claim)')
  }),

  scenario('137a', 'past its time, Delete: claim, Sandbox and Pod go', async (scene) => {
    await claimWith(scene, { shutdownPolicy: 'Delete' })
    await scene.readyClaim('claim')
    await soon(scene)
    await scene.gone(SandboxClaims, 'claim')
    await scene.gone(Pods, 'claim')
    await scene.observe()
  }),

  scenario('137b', 'past its time, DeleteForeground: the claim goes last', async (scene) => {
    await claimWith(scene, { shutdownPolicy: 'DeleteForeground' })
    await scene.readyClaim('claim')
    await scene.merge(Pods, 'claim', { metadata: { finalizers: ['example.com/hold'] } })
    await soon(scene)
    await scene.until(SandboxClaims, 'claim', ({ metadata }) => metadata.deletionTimestamp !== undefined)
    await scene.rest()
    deepStrictEqual((await scene.get(SandboxClaims, 'claim')).metadata.finalizers, ['foregroundDeletion'])
    await scene.merge(Pods, 'claim', { metadata: { finalizers: null } })
    await scene.gone(SandboxClaims, 'claim')
    await scene.observe()
  }),

  scenario('138', 'finished without a limit: everything stays', async (scene) => {
    scene.fate('unready')
    await claimWith(scene, undefined)
    await scene.ends('claim', 'succeeded')
    await scene.reason(SandboxClaims, 'claim', 'PodSucceeded')
    await scene.observe()
    holds(await scene.find(Sandboxes, 'claim'), 'find(Sandboxes, claim)')
  }),

  scenario('row12', 'a Sandbox that expires by itself makes the claim say so', async (scene) => {
    await claimWith(scene, undefined)
    await scene.readyClaim('claim')
    await scene.merge(Sandboxes, 'claim', { spec: { shutdownTime: inSeconds(-1) } })
    await scene.reason(SandboxClaims, 'claim', 'SandboxExpired')
    await scene.gone(Pods, 'claim')
    await scene.observe()
  }),

  scenario('140', 'the first Ready is written down once, also across a flap', async (scene) => {
    const stamp = `${AGENTS}/claim-first-ready-at`
    await claimWith(scene, undefined)
    await scene.readyClaim('claim')
    const first = await scene.until(
      SandboxClaims,
      'claim',
      ({ metadata }) => metadata.annotations?.[stamp] !== undefined,
    )
    // Upstream's controller reads from a cache: one that does not hold the stamp yet has it write another over the first.
    await scene.rest()
    scene.fate('unready')
    await scene.reason(SandboxClaims, 'claim', 'DependenciesNotReady')
    scene.fate('ready')
    await scene.readyClaim('claim')
    await scene.observe()
    const last = await scene.get(SandboxClaims, 'claim')
    deepStrictEqual(last.metadata.annotations?.[stamp], first.metadata.annotations?.[stamp])
  }),

  scenario('fqdn', 'the claim mirrors the Service name of its Sandbox', async (scene) => {
    await scene.create(SandboxTemplates, template('tmpl', { service: true }))
    await scene.create(SandboxWarmPools, pool('pool', 1))
    await scene.fullPool('pool', 1)
    await scene.create(SandboxClaims, claim())
    await scene.readyClaim('claim')
    await scene.fullPool('pool', 1)
    await scene.observe('warm')
    const name = (await scene.get(SandboxClaims, 'claim')).status?.sandbox?.name ?? ''
    await scene.merge(Sandboxes, name, { spec: { service: false } })
    await scene.until(SandboxClaims, 'claim', ({ status }) => !status?.sandbox?.serviceFQDN)
    await scene.observe('without Service')
  }),

  scenario('suspend', 'suspending a bound Sandbox shows in its claim', async (scene) => {
    await claimWith(scene, undefined, 1)
    const name = (await scene.readyClaim('claim')).status?.sandbox?.name ?? ''
    await scene.fullPool('pool', 1)
    await scene.merge(Sandboxes, name, { spec: { operatingMode: 'Suspended' } })
    await scene.says(SandboxClaims, 'claim', 'False/SandboxSuspended: Sandbox is suspended')
    await scene.observe('suspended')
    await scene.merge(Sandboxes, name, { spec: { operatingMode: 'Running' } })
    await scene.readyClaim('claim')
    await scene.observe('resumed')
  }),

  scenario(
    '143',
    'without events and observability annotations',
    async (scene) => {
      await claimWith(scene, undefined, 1)
      await scene.readyClaim('claim')
      await scene.fullPool('pool', 1)
      await scene.create(SandboxClaims, claim('cold', { warmPoolRef: { name: 'none' } }))
      await scene.reason(SandboxClaims, 'cold', 'WarmPoolNotFound')
      await scene.observe()
    },
    {
      flags: [
        '--disable-claim-events',
        '--disable-claim-observability-annotations',
        '--enable-warm-pool-eviction=false',
      ],
    },
  ),
]

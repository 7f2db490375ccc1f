import {
  isAlreadyExists,
  isNotFound,
  type KubeObject,
  PersistentVolumeClaims,
  Pods,
  type ResourceKind,
  type Sandbox,
  Sandboxes,
  Services,
  type Stored,
} from '@corral/resources'
import { StepError } from '../shared/error-text.js'
import type { Store } from '../shared/informed-store.js'
import { annotations, sandboxFieldManager } from '../shared/names.js'
import type { ChildAction, ChildKind, ChildOutcome, ChildStep } from './child-step.js'
import type { SandboxPorts } from './ports.js'

const kinds: Record<ChildKind, ResourceKind> = { pod: Pods, service: Services, pvc: PersistentVolumeClaims }

/** A create lost against an object that the store does not show. The caller reads it from the server and plans again. */
export class ChildExists extends Error {
  override readonly name: string = 'ChildExists'
  constructor(override readonly cause: unknown) {
    super('the child exists already')
  }
}

/** Carries out one step, in order, up to the first failure. A failed delete keeps the object in the outcome. */
export async function performStep<T extends KubeObject>(
  step: ChildStep<Stored<T>>,
  sandbox: Stored<Sandbox>,
  ports: SandboxPorts,
  signal: AbortSignal,
): Promise<ChildOutcome<Stored<T>>> {
  let object = step.found
  for (const action of step.actions) {
    try {
      const answer = await perform(action, sandbox, ports, signal)
      // The cast holds because a step writes to children of one kind only.
      if (answer) object = answer as Stored<T>
    } catch (error) {
      if (error instanceof ChildExists) throw error
      return { object: action.kind === 'delete' ? object : undefined, errors: [error] }
    }
  }
  return { object, errors: step.error === undefined ? [] : [new Error(step.error)] }
}

async function perform(
  action: ChildAction,
  sandbox: Stored<Sandbox>,
  { client, state }: SandboxPorts,
  signal: AbortSignal,
): Promise<Stored<KubeObject> | undefined> {
  const namespace = sandbox.metadata.namespace ?? ''
  const stores: Record<ChildKind, Store<KubeObject>> = {
    pod: state.pods as unknown as Store<KubeObject>,
    service: state.services as unknown as Store<KubeObject>,
    pvc: state.pvcs as unknown as Store<KubeObject>,
  }
  switch (action.kind) {
    case 'create':
      try {
        const created = await client.create(kinds[action.child], action.object, {
          fieldManager: sandboxFieldManager,
          signal,
        })
        return stores[action.child].remember(created)
      } catch (error) {
        if (action.child === 'pod' && isAlreadyExists(error)) throw new ChildExists(error)
        throw error
      }
    case 'patch': {
      const ref = { name: action.name, namespace }
      const patched = await prefixed(action.failure, () =>
        client.patch(kinds[action.child], ref, { type: 'merge', body: action.patch }, { signal }),
      )
      return stores[action.child].remember(patched)
    }
    case 'replace': {
      const updated = await prefixed(action.failure, () =>
        client.update(kinds[action.child], action.object, { signal }),
      )
      return stores[action.child].remember(updated)
    }
    case 'delete': {
      const ref = { name: action.name, namespace }
      try {
        await prefixed(action.failure, () => client.delete(kinds[action.child], ref, { signal }))
      } catch (error) {
        if (!(action.missingIsFine && isNotFound(error))) throw error
      }
      return undefined
    }
    case 'forgetPodName': {
      const body = { metadata: { annotations: { [annotations.podName]: null } } }
      const ref = { name: sandbox.metadata.name, namespace }
      await prefixed('failed to clear pod name annotation', async () =>
        state.sandboxes.remember(await client.patch(Sandboxes, ref, { type: 'merge', body }, { signal })),
      )
      return undefined
    }
  }
}

async function prefixed<T>(failure: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw new StepError(failure, error)
  }
}

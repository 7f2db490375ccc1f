import { errorCode, type KubeObject } from '@corral/resources'
import type { ServerContext } from '../context/server-context.js'
import { prepareWrite } from '../crd/prepare-definition.js'
import type { HousekeepingStore, ObjectRef } from '../housekeeping/index.js'
import { copyJson, type JsonObject } from '../objects/plain-json.js'
import type { KindDefinition } from '../registry/kind-definition.js'
import { finalizeNamespace } from '../subresources/finalize.js'
import { createObject } from '../write/create-object.js'
import { deleteObject } from '../write/delete-object.js'
import { type Identified, identify } from '../write/identity.js'
import { updateObject } from '../write/update-object.js'
import { systemWrite } from './seed.js'

/** The server as its own housekeepers see it: they write through the same pipeline as every client. */
export function housekeepingStore(context: ServerContext): HousekeepingStore {
  const { store, registry } = context

  /** The kind and newest state behind a reference; undefined when it is gone or another object took the name. */
  const resolve = (ref: ObjectRef): { kind: KindDefinition; live: KubeObject } | undefined => {
    const live = store.collection(ref.resource).findHead(ref.namespace, ref.name)
    if (!live || live.metadata?.uid !== ref.uid) return undefined
    const kind = registry.ofCollection(ref.resource, live.apiVersion)
    return kind ? { kind, live } : undefined
  }

  return {
    resources: () => registry.stored.map((kind) => ({ resource: kind.collection, namespaced: kind.namespaced })),
    list: (resource) => store.collection(resource).list(),
    watch: (listener) =>
      store.listen((resource, event) => listener({ type: event.type, resource, object: event.object })),
    async delete(ref, options = {}) {
      const found = resolve(ref)
      if (!found) return
      await unlessGone(async () => {
        await deleteObject(context, found.kind, ref.namespace, ref.name, { ...options, uid: ref.uid, dryRun: false })
          .committed
      })
    },
    async update(ref, change, options = {}) {
      const kind = resolve(ref)?.kind
      if (!kind) return
      await prepareWrite(kind)
      const found = resolve(ref)
      const next = found && change(found.live)
      if (!next) return
      const body = copyJson(next) as Identified
      const target = { namespace: ref.namespace, name: ref.name, subresource: options.subresource ?? '' }
      await unlessGone(async () => {
        if (options.subresource === 'finalize') {
          await finalizeNamespace(context, kind, ref.name, systemWrite, () => body).committed
        } else {
          await updateObject(context, kind, target, systemWrite, () => body).committed
        }
      })
    },
    async create(resource, object) {
      const kind = registry.ofCollection(resource, object.apiVersion)
      if (!kind) return
      await prepareWrite(kind)
      const body = copyJson(object) as JsonObject
      const namespace = kind.namespaced ? object.metadata?.namespace : undefined
      await createObject(context, kind, identify(kind, body, namespace, undefined), systemWrite).committed
    },
  }
}

/** A conflict with another writer: the object is gone or replaced, which is what housekeeping wanted. */
async function unlessGone(act: () => Promise<void>): Promise<void> {
  try {
    await act()
  } catch (error) {
    const code = errorCode(error)
    if (code !== 'NotFound' && code !== 'Conflict') throw error
  }
}

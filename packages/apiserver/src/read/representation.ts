import type { KubeObject, WatchEventType, WatchFrame } from '@corral/resources'
import { jsonBytes } from '../store/json-bytes.js'

/** How the objects of a watch are shown. One that depends on earlier events is stateful and never cached. */
export interface EventRepresentation {
  /** Names the representation in the cache of frames; undefined: make every frame anew. */
  readonly cacheKey: string | undefined
  show(object: KubeObject): KubeObject
  /** The object of a bookmark, of the type the watcher expects. */
  bookmark(resourceVersion: string, annotations?: Record<string, string>): KubeObject
}

/** Objects as they are, in the version of the kind. */
export function plainRepresentation(apiVersion: string, kind: string): EventRepresentation {
  return {
    cacheKey: apiVersion,
    show: (object) => object,
    bookmark: (resourceVersion, annotations) => ({
      kind,
      apiVersion,
      metadata: { resourceVersion, ...(annotations ? { annotations } : {}) },
    }),
  }
}

/** One event as a frame; its line is made when the first socket asks for it. */
export function makeFrame(type: WatchEventType, object: KubeObject): WatchFrame {
  let bytes: Uint8Array | undefined
  return {
    event: { type, object },
    line() {
      bytes ??= Buffer.concat([Buffer.from(`{"type":"${type}","object":`), jsonBytes(object), LINE_END])
      return bytes
    },
  }
}

const LINE_END = Buffer.from('}\n')

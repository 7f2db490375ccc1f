import type { WatchEventType, WatchFrame } from '@corral/ports'
import type { KubeObject } from '@corral/resources'
import { jsonText, RecentText } from '../objects/json-text.js'

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
  const frame: WatchFrame = { event: { type, object }, line: () => lines.of(frame, toLine) }
  return frame
}

/** Watchers of one kind read the same line at about the same time. */
const lines = new RecentText<WatchFrame>(1024 * 1024)

const toLine = ({ event }: WatchFrame): string => `{"type":"${event.type}","object":${jsonText(event.object)}}\n`

import type { KubeObject } from '@corral/resources'

const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class'

/** The class for claims that name none: the one marked so, of several the newest, of those as new the first by name. */
export function defaultStorageClass(classes: Iterable<KubeObject>): string | undefined {
  const marked = [...classes].filter(({ metadata }) => metadata?.annotations?.[DEFAULT_CLASS] === 'true')
  const madeAt = ({ metadata }: KubeObject): string => metadata?.creationTimestamp ?? ''
  const nameOf = ({ metadata }: KubeObject): string => metadata?.name ?? ''
  marked.sort((a, b) => madeAt(b).localeCompare(madeAt(a)) || nameOf(a).localeCompare(nameOf(b)))
  return marked[0]?.metadata?.name
}

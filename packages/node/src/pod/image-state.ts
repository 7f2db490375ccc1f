import { imageAnnotation, imageMessage, type Pod } from '@corral/resources'
import type { ContainerState } from '../records/container-state.js'
import type { StatusInput } from './status.js'

/** How the annotation with an image was followed; undefined where there is none. Pure. */
export function imageState(
  { metadata, spec }: Pod,
  states: ReadonlyMap<string, ContainerState>,
  wanted: string | undefined,
  lacks: readonly string[] = [],
): StatusInput['image'] {
  const name = metadata?.annotations?.[imageAnnotation] ?? ''
  if (name === '') return undefined
  if (wanted === undefined)
    return {
      status: 'False',
      reason: 'NotFound',
      message: `${name}: not imported here; corral image import ${name} FILE`,
    }
  const state = states.get(spec?.containers[0]?.name ?? '')
  const isThere = state?.run !== undefined && state.image === name && state.ready
  if (isThere)
    return { status: 'True', reason: 'Applied', message: imageMessage(name, 'the container runs in it', lacks) }
  const what = state?.waiting?.message ?? 'the container starts in it'
  return { status: 'False', reason: 'Starting', message: imageMessage(name, what, lacks) }
}

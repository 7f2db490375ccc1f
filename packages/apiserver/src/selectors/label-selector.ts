import { type KubeObject, matchesRequirements, parseLabelSelector as parseRequirements } from '@corral/resources'

export type LabelMatcher = (object: KubeObject) => boolean

/** A parsed label selector; a `SelectorError` when it cannot be parsed. An empty one is undefined: everything matches. */
export function parseLabelSelector(text: string | null): LabelMatcher | undefined {
  if (text === null || text.trim() === '') return undefined
  const requirements = parseRequirements(text)
  return (object) => matchesRequirements(requirements, object.metadata?.labels)
}

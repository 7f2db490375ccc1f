import type { ColumnId } from './column.js'

interface Explanation {
  readonly column?: ColumnId
  readonly numbers?: readonly string[]
  readonly what: RegExp
  readonly reason: string
}

/** Differences that are meant, each with its reason as the document tells it. */
const explanations: readonly Explanation[] = [
  {
    what: /ontainers\[\d+\]\.resources: ours nothing, upstream \{\}$/,
    reason:
      'Upstream writes `resources: {}` into every container it copies, because its Go type has no way to leave it out; ours copies the template as it is.',
  },
  {
    what: /(sandbox-(pod-)?template-hash|(blueprint|pod template) hash): ours "[0-9a-f]{8}", upstream "[0-9a-f]{8}"$/,
    reason:
      "The two template hashes differ for the same reason: they are made of the template's JSON. Members of the other manager's pools are compared by content, so taking over a pool recreates nobody.",
  },
  {
    what: /claim-first-ready-at: ours "<precise time>", upstream "unknown"$/,
    reason:
      "Upstream's next pass often sees its own Ready status before its own time stamp and overwrites the stamp with `unknown`; ours reads its own writes and keeps the time.",
  },
  {
    what: /sandboxclaims\[\d+\]\.(spec\.additionalPodMetadata: ours nothing, upstream \{\}|metadata\.generation: |status\.conditions\[\d+\]\.observedGeneration: )/,
    reason:
      "Upstream records an assignment by updating the whole claim, which adds `additionalPodMetadata: {}` to the user's spec and so a generation; ours patches the annotation alone.",
  },
  {
    what: /metadata\.(annotations|labels): ours \{\}, upstream nothing$/,
    reason:
      'After removing the last annotation or label ours leaves an empty map: removing the map itself would take along a key that somebody else adds at the same moment.',
  },
  {
    numbers: ['133a', '133b', '136a', '136b', '136c', '137a', '137b'],
    what: /\.events\[/,
    reason:
      'Upstream often reports `ClaimExpired` twice, from a pass that does not see its own status yet; ours reports it once.',
  },
]

export function explanationOf(finding: { column: ColumnId; number: string; what: string }): string | undefined {
  return explanations.find(
    ({ column = finding.column, numbers = [finding.number], what }) =>
      column === finding.column && numbers.includes(finding.number) && what.test(finding.what),
  )?.reason
}

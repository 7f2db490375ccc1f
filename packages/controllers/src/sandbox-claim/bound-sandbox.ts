import { type Sandbox, type SandboxClaim, Sandboxes, type SandboxTemplate, type Stored } from '@corral/resources'
import { errorText, StepError } from '../shared/error-text.js'
import { labels } from '../shared/names.js'
import { quote } from '../shared/ownership.js'
import { boundPatch } from './adoption-patch.js'
import { ClaimProblem } from './claim-problem.js'
import { getTemplate } from './pool-template.js'
import type { ClaimPorts } from './ports.js'

/** Brings a bound Sandbox's pod metadata up to what template and claim say now. */
export async function keepMetadata(
  claim: Stored<SandboxClaim>,
  sandbox: Stored<Sandbox>,
  ports: ClaimPorts,
  signal: AbortSignal,
): Promise<Stored<Sandbox>> {
  let template: Stored<SandboxTemplate>
  try {
    template = getTemplate(claim, ports)
  } catch (problem) {
    const { labels: wantedLabels, annotations: wantedAnnotations } = claim.spec.additionalPodMetadata ?? {}
    const wantsMetadata = Object.keys({ ...wantedLabels, ...wantedAnnotations }).length > 0
    // A bound sandbox runs on without its template unless the claim wants something merged with it.
    if (!wantsMetadata || !(problem instanceof ClaimProblem)) return sandbox
    const text = `failed to get template for metadata propagation: ${problem.message}`
    throw new ClaimProblem(problem.kind, text, { cause: problem, shown: shownMissing(problem, text) })
  }
  const body = boundPatch(claim, sandbox, template)
  if (!body) return sandbox
  const ref = { name: sandbox.metadata.name, namespace: sandbox.metadata.namespace ?? '' }
  try {
    return ports.state.sandboxes.remember(await ports.client.patch(Sandboxes, ref, { type: 'merge', body }, { signal }))
  } catch (error) {
    const text = `failed to patch sandbox metadata for claim ${quote(claim.metadata.name)}: ${errorText(error)}`
    throw new ClaimProblem('ReconcilerError', text, { cause: error, sandbox })
  }
}

function shownMissing(problem: ClaimProblem, text: string): string {
  return problem.kind === 'TemplateNotFound' ? text.replace(/: SandboxTemplate not found$/, '') : problem.shown
}

/** Writes down how a Sandbox of an earlier release came about, once. */
export async function backfillLaunchType(
  sandbox: Stored<Sandbox>,
  launchType: 'warm' | 'cold',
  ports: ClaimPorts,
  signal: AbortSignal,
): Promise<Stored<Sandbox>> {
  if (sandbox.metadata.labels?.[labels.launchType] !== undefined) return sandbox
  const ref = { name: sandbox.metadata.name, namespace: sandbox.metadata.namespace ?? '' }
  const body = { metadata: { labels: { [labels.launchType]: launchType } } }
  try {
    return ports.state.sandboxes.remember(await ports.client.patch(Sandboxes, ref, { type: 'merge', body }, { signal }))
  } catch (error) {
    throw new StepError(`failed to initialize launch type label on sandbox ${quote(ref.name)}`, error)
  }
}

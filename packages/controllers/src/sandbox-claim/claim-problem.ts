import type { Sandbox, Stored } from '@corral/resources'
import { errorText } from '../shared/error-text.js'

/** Why a claim could not get its sandbox. Each becomes a condition's reason; the table below says how it is retried. */
export type ProblemKind =
  | 'TemplateNotFound'
  | 'WarmPoolNotFound'
  | 'AdoptionConflict'
  | 'SandboxCreatePending'
  | 'InvalidMetadata'
  | 'EnvVarsInjectionRejected'
  | 'NotOwned'
  | 'VolumeClaimTemplatesError'
  | 'ReconcilerError'

/**
 * A failure with its class. `message` is the full text; `shown` is what the condition says where that differs; `sandbox`
 * is the one the claim keeps all the same.
 */
export class ClaimProblem extends Error {
  override readonly name: string = 'ClaimProblem'
  readonly code: string
  constructor(
    readonly kind: ProblemKind,
    message: string,
    readonly options: { cause?: unknown; shown?: string; sandbox?: Stored<Sandbox> } = {},
  ) {
    super(message, { cause: options.cause })
    this.code = kind
  }
  get shown(): string {
    return this.options.shown ?? this.message
  }
}

/** Any failure as a problem; what has no class of its own is a `ReconcilerError`. */
export function toProblem(error: unknown): ClaimProblem {
  return error instanceof ClaimProblem ? error : new ClaimProblem('ReconcilerError', errorText(error), { cause: error })
}

/** The user has to change something first: shown in the status, not retried. */
export function isSuppressed({ kind }: ClaimProblem): boolean {
  return (
    kind === 'InvalidMetadata' ||
    kind === 'NotOwned' ||
    kind === 'EnvVarsInjectionRejected' ||
    kind === 'VolumeClaimTemplatesError'
  )
}

/** How soon to look again although nothing failed, for problems that watches may miss. */
export function quietRetryMs({ kind }: ClaimProblem): number | undefined {
  if (kind === 'TemplateNotFound' || kind === 'WarmPoolNotFound') return 60_000
  if (kind === 'SandboxCreatePending') return 200
  return undefined
}

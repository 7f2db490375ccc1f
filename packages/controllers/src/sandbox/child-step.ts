import type { KubeObject } from '@corral/resources'

export type ChildKind = 'pod' | 'service' | 'pvc'

/** One write to a child of the Sandbox. `failure` goes in front of the server's message when it fails. */
export type ChildAction =
  | { kind: 'create'; child: ChildKind; object: KubeObject }
  | { kind: 'patch'; child: ChildKind; name: string; patch: object; failure: string }
  | { kind: 'replace'; child: ChildKind; object: KubeObject; failure: string }
  | { kind: 'delete'; child: ChildKind; name: string; missingIsFine: boolean; failure: string }
  /** The annotation names a Pod that is not ours, or not there. */
  | { kind: 'forgetPodName' }

/** What one child needs. `found` is the object as it stands; a create, patch or replace puts the server's answer in its place. */
export interface ChildStep<T extends KubeObject> {
  actions: ChildAction[]
  found?: T | undefined
  /** A problem known without asking the server. It is reported after the actions. */
  error?: string
}

/** How a step went. An error without an object leaves the child's state unknown. */
export interface ChildOutcome<T extends KubeObject> {
  object?: T | undefined
  errors: unknown[]
}

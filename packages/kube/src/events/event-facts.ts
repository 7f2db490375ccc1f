import type { Event, KubeObject, Stored } from '@corral/resources'

/** What is said about an object. */
export interface EventNote {
  type: 'Normal' | 'Warning'
  reason: string
  /** What was done or tried; events of the core group do not carry it. */
  action: string
  note: string
  /** The part of the object it is about, such as `spec.containers{main}`; events of the core group only. */
  fieldPath?: string
}

/** A note with everything an event is made of. */
export interface EventFacts {
  regarding: Stored<KubeObject>
  note: EventNote
  /** Of the event itself. */
  name: string
  namespace: string
  reportingController: string
  reportingInstance: string
  at: Date
}

export type CoreEvent = Event

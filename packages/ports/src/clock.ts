/** Where the time comes from. Code that reads it takes a clock, so that tests can hand in a fixed or stepped one. */
export interface Clock {
  now(): Date
}

export const systemClock: Clock = { now: () => new Date() }

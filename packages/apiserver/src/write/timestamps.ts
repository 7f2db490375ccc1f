/** A time as Kubernetes writes it: UTC, whole seconds. */
export const timestamp = (time: Date): string => `${time.toISOString().slice(0, 19)}Z`

let lastSecond = Number.NaN
let lastText = ''

/** A time as Kubernetes writes it: UTC, whole seconds. */
export function timestamp(time: Date): string {
  const second = Math.floor(time.getTime() / 1000)
  if (second !== lastSecond) {
    lastText = `${time.toISOString().slice(0, 19)}Z`
    lastSecond = second
  }
  return lastText
}

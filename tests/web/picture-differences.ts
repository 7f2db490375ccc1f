import type { Page } from 'playwright-core'

/** How far a picture may be from the committed one. */
export const pictureThreshold = {
  /** A channel of a pixel differs when it is further away than this, of 255. */
  channel: 24,
  /** Part of all pixels that may differ: the edge of a letter, not a moved line. */
  pixels: 0.002,
} as const

/** Runs in the browser, which decodes pictures. */
const inBrowser = `
  globalThis.pictureDifference = async (sources, channel) => {
    const decode = async (source) => {
      const bytes = Uint8Array.from(atob(source), (letter) => letter.charCodeAt(0))
      const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/png' }))
      const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d')
      context.drawImage(bitmap, 0, 0)
      return context.getImageData(0, 0, bitmap.width, bitmap.height)
    }
    const [left, right] = await Promise.all(sources.map(decode))
    if (left.width !== right.width || left.height !== right.height) return 1
    let count = 0
    for (let at = 0; at < left.data.length; at += 4)
      if ([0, 1, 2].some((offset) => Math.abs(left.data[at + offset] - right.data[at + offset]) > channel)) count += 1
    return count / (left.width * left.height)
  }
`

/** Part of the pixels of two PNGs that differ; 1 where their sizes do. */
export async function pictureDifference(page: Page, one: Buffer, other: Buffer): Promise<number> {
  await page.evaluate(inBrowser)
  return page.evaluate(
    ({ sources, channel }) => {
      interface Tool {
        pictureDifference(sources: string[], channel: number): Promise<number>
      }
      return (globalThis as unknown as Tool).pictureDifference(sources, channel)
    },
    { sources: [one.toString('base64'), other.toString('base64')], channel: pictureThreshold.channel },
  )
}

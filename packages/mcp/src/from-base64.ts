import { CorralError } from '@corral/protocol'

/** The bytes of a text in base64, with or without its padding; `Invalid` for any other text. */
export function fromBase64(content: string): Buffer {
  const bytes = Buffer.from(content, 'base64')
  // At most two at its end: a pattern for any number would try every row of them in what is no base64.
  const unpadded = (text: string): string => text.replace(/={1,2}$/, '')
  if (unpadded(bytes.toString('base64')) === unpadded(content.replace(/\s+/g, ''))) return bytes
  throw new CorralError('Invalid', 'content is not base64', { hint: 'Leave binary out to write text.' })
}

import { pc } from './colors.js'

const escapeCode = 0x1b
const endOfColours = '\u001b[0m'

/**
 * Text from a sandbox as it may reach a person's terminal. Colours stay where there is one that shows them; every other control character is shown as a
 * sign instead of obeyed, so that no agent sets a title, fills a clipboard or rewrites a line above it. What would have
 * been overwritten after a carriage return gets a line of its own.
 */
export function terminalText(text: string, hasColours: boolean = pc.isColorSupported): string {
  const tidy = text.replace(/\r+\n/g, '\n').replace(/\r/g, '\n')
  let result = ''
  let hasColour = false
  for (let index = 0; index < tidy.length; index++) {
    const code = tidy.charCodeAt(index)
    const colour = code === escapeCode ? /^\[[0-9;]{0,32}m/.exec(tidy.slice(index + 1, index + 35))?.[0] : undefined
    if (colour !== undefined) {
      if (hasColours) result += `${tidy[index]}${colour}`
      index += colour.length
      hasColour = hasColours
    } else result += isSteering(code) ? sign(code) : tidy[index]
  }
  return hasColour ? result + endOfColours : result
}

/** The controls of ASCII but tab and newline, those of its upper half, and what turns the direction of text around. */
function isSteering(code: number): boolean {
  if (code < 0x20) return code !== 0x09 && code !== 0x0a
  if (code < 0x200e) return code >= 0x7f && code <= 0x9f
  return code <= 0x200f || (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)
}

function sign(code: number): string {
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  return code === 0x7f ? '\u2421' : '\ufffd'
}

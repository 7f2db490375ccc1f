import { describe, expect, it } from 'vitest'
import { fromBase64 } from './from-base64.js'

describe('content in base64', () => {
  it.each(['aGk=', 'aGk', 'aG\nk=\n'])('%j is read', (text) => {
    expect(fromBase64(text).toString()).toBe('hi')
  })

  it.each([
    { when: 'plain words', text: 'not base64!' },
    { when: 'more padding than there is', text: 'aGk===' },
    { when: 'megabytes of padding in the middle, at once', text: `${'='.repeat(4_000_000)}x` },
  ])('is refused with $when', { timeout: 120_000 }, ({ text }) => {
    const start = performance.now()
    expect(() => fromBase64(text)).toThrow('content is not base64')
    // Looked for by a pattern of any length, the end of such a row took hours.
    expect(performance.now() - start).toBeLessThan(20_000)
  })
})

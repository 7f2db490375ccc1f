import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ensureCertificates } from './certificates.js'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'corral-tls-'))
})
afterEach(() => {
  vi.useRealTimers()
  rmSync(directory, { recursive: true, force: true })
})

const day = 24 * 3600_000
const damage = (pattern: RegExp, text: string): void => {
  for (const name of readdirSync(directory)) if (pattern.test(name)) writeFileSync(join(directory, name), text)
}

it('are kept from one start to the next', async () => {
  const made = await ensureCertificates(directory)
  expect(await ensureCertificates(directory)).toEqual(made)
})

describe('are made anew, and then kept, where', () => {
  it.each<{ when: string; happens: () => void }>([
    { when: 'a power cut left all of them empty', happens: () => damage(/./, '') },
    { when: 'one certificate is empty', happens: () => damage(/^admin\.crt$/, '') },
    { when: 'one key is junk', happens: () => damage(/^server\.key$/, 'junk') },
    {
      when: 'a key belongs to another certificate',
      happens: () => damage(/^ca\.key$/, readFileSync(join(directory, 'server.key'), 'utf8')),
    },
    { when: 'one is missing', happens: () => rmSync(join(directory, 'ca.crt')) },
    { when: 'the clock was a month ahead when they were made', happens: () => vi.setSystemTime(Date.now() - 30 * day) },
    { when: 'they end soon', happens: () => vi.setSystemTime(Date.now() + 3640 * day) },
  ])('$when', async ({ happens }) => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const before = await ensureCertificates(directory)
    happens()
    const made = await ensureCertificates(directory)
    expect(made.ca.cert).not.toBe(before.ca.cert)
    expect(await ensureCertificates(directory)).toEqual(made)
  })
})

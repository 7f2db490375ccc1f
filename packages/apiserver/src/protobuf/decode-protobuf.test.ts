import { describe, expect, it } from 'vitest'
import recorded from './fixtures/kubectl-1.33.json' with { type: 'json' }
import { decodeProtobuf, isProtobuf } from './index.js'

const bytesOf = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'))

describe('bodies kubectl 1.33 sends', () => {
  it.each(Object.entries(recorded))('%s', (_name, hex) => {
    console.log(JSON.stringify(decodeProtobuf(bytesOf(hex))))
  })
})

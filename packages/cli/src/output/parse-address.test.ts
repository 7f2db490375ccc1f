import { expect, it } from 'vitest'
import { parseListenAddress } from './parse-address.js'

it.each([
  [':9090', '0.0.0.0', 9090],
  ['127.0.0.1:9090', '127.0.0.1', 9090],
  ['localhost:0', 'localhost', 0],
  ['[::1]:8080', '::1', 8080],
])('%s listens on %s, port %d', (text, host, port) => {
  expect(parseListenAddress(text)).toEqual({ host, port })
})

it.each(['', '9090', 'host', ':', ':65536', '::1:80', 'a:b', 'http://x:1'])('"%s" is not an address', (text) => {
  expect(() => parseListenAddress(text)).toThrow(/host:port/)
})

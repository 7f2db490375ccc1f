import { expect, it } from 'vitest'
import { parseRepositoryUrl } from './repository-url.js'

it.each([
  ['/srv/a', { kind: 'local', url: '/srv/a', path: '/srv/a' }],
  ['  /srv/a  ', { kind: 'local', url: '/srv/a', path: '/srv/a' }],
  ['file:///srv/a%20b', { kind: 'remote', url: 'file:///srv/a b', transport: 'file' }],
  ['file://localhost/srv/a', { kind: 'remote', url: 'file:///srv/a', transport: 'file' }],
  ['https://git.example.com/a', { kind: 'remote', url: 'https://git.example.com/a', transport: 'https' }],
  ['http://git.example.com/a', { kind: 'remote', url: 'http://git.example.com/a', transport: 'http' }],
  ['ssh://git@git.example.com/a', { kind: 'remote', url: 'ssh://git@git.example.com/a', transport: 'ssh' }],
  ['git@git.example.com:a/b.git', { kind: 'remote', url: 'git@git.example.com:a/b.git', transport: 'ssh' }],
])('%s is read as git reads it', (value, location) => {
  expect(parseRepositoryUrl(value)).toEqual(location)
})

it.each([
  '',
  '-c',
  'a/b',
  '/srv/a\0b',
  'file://other/srv/a',
  'file:///srv/a%00b',
  'file:///srv/a%2Fb',
  'ftp://git.example.com/a',
  'ssh://-oProxyCommand=x/a',
  'ssh://-x@git.example.com/a',
  'ext::sh -c x',
])('%j names no repository', (value) => {
  expect(() => parseRepositoryUrl(value)).toThrow(expect.objectContaining({ code: 'Invalid' }))
})

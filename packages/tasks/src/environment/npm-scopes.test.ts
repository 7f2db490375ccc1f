import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { setupScript } from '../sandbox/scripts.js'
import { scopesAtMirror } from './npm-scopes.js'

const known = [
  { scope: '@acme', registry: 'https://npm.acme.example/api/npm/' },
  { scope: '@other', registry: 'https://npm.other.example/' },
]

it.each([
  {
    when: 'it names the registry of the user',
    npmrc: '@acme:registry=https://npm.acme.example/api/npm',
    scopes: ['@acme'],
  },
  { when: 'it quotes it', npmrc: ' @acme:registry = "https://npm.acme.example/api/npm/" \r\n', scopes: ['@acme'] },
  { when: 'it names another path of that host', npmrc: '@acme:registry=https://npm.acme.example/else/', scopes: [] },
  { when: 'it names another host', npmrc: '@acme:registry=https://evil.example/api/npm/', scopes: [] },
  { when: 'it names it without TLS', npmrc: '@acme:registry=http://npm.acme.example/api/npm/', scopes: [] },
  { when: 'the user has none for the scope', npmrc: '@new:registry=https://npm.acme.example/api/npm/', scopes: [] },
  {
    when: 'a later line names another',
    npmrc: '@other:registry=https://npm.other.example\n@other:registry=https://x.example',
    scopes: [],
  },
  { when: 'it is a comment', npmrc: '# @acme:registry=https://npm.acme.example/api/npm/', scopes: [] },
  { when: 'it is made of a variable', npmrc: `@acme:registry=\${REGISTRY}`, scopes: [] },
])('of a project’s .npmrc $scopes go through the mirror when $when', ({ npmrc, scopes }) => {
  expect(scopesAtMirror([npmrc], known)).toEqual(scopes)
})

it('a part’s own .npmrc counts as well, where no other one sends the scope elsewhere', () => {
  const web = '@acme:registry=https://npm.acme.example/api/npm/'
  expect(scopesAtMirror(['', web], known)).toEqual(['@acme'])
  expect(scopesAtMirror([web, '@acme:registry=https://x.example/'], known)).toEqual([])
})

it('set-up has them as settings that win over the project’s own file', () => {
  const env = {
    PATH: process.env.PATH ?? '',
    REPO: '/',
    SETUP: 'env | grep ^npm_config | LC_ALL=C sort',
    CORRAL_NPM_SCOPES: '@acme @other',
    npm_config_registry: 'http://127.0.0.1:8788/npm/',
  }
  expect(execFileSync('/bin/sh', ['-c', setupScript], { env, encoding: 'utf8' }).trim().split('\n')).toEqual([
    'npm_config_@acme:registry=http://127.0.0.1:8788/npm/',
    'npm_config_@other:registry=http://127.0.0.1:8788/npm/',
    'npm_config_registry=http://127.0.0.1:8788/npm/',
  ])
})

import { describe, expect, it } from 'vitest'
import type { HostSettings } from './host-settings.js'
import { hostUpstreams } from './host-upstreams.js'

/** A machine that is nothing but these files, variables and answers of programs. */
function machine(parts: {
  env?: Record<string, string>
  files?: Record<string, string>
  programs?: Record<string, string>
  index?: string
}): HostSettings {
  return {
    env: parts.env ?? {},
    home: '/home/u',
    readFile: async (path) => parts.files?.[path],
    run: async (argv) => parts.programs?.[argv.join(' ')],
    cargoDefaultIndex: async () => parts.index,
  }
}

const noDownload: typeof fetch = async () => new Response('{"dl":"https://crates.test/dl"}')
const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`

describe('the registries of this machine', () => {
  it.each<[string, { of: string; on: Parameters<typeof machine>[0]; are: Record<string, unknown>[] }]>([
    [
      'npm: what npm itself answers',
      {
        of: 'npm',
        on: { programs: { 'npm config get registry': 'https://npm.test/\n' } },
        are: [{ url: 'https://npm.test/' }],
      },
    ],
    [
      'npm: a scope and tokens of the user, through a variable and a parent path',
      {
        of: 'npm',
        on: {
          env: { TOKEN: 't1' },
          files: {
            '/home/u/.npmrc':
              'registry=https://npm.test/team/\n@acme:registry=https://acme.test/npm\n//npm.test/:_authToken=$' +
              '{TOKEN}\n//acme.test/npm/:_auth=eDp5\n',
          },
        },
        are: [
          { url: 'https://npm.test/team/', authorization: 'Bearer t1' },
          { url: 'https://acme.test/npm/', authorization: 'Basic eDp5', scope: '@acme' },
        ],
      },
    ],
    [
      'npm: user name and password as npm login writes them',
      {
        of: 'npm',
        on: {
          env: { npm_config_registry: 'https://npm.test' },
          files: {
            '/home/u/.npmrc': `//npm.test/:username=u\n//npm.test/:_password=${Buffer.from('p').toString('base64')}`,
          },
        },
        are: [{ url: 'https://npm.test/', authorization: basic('u:p') }],
      },
    ],
    [
      'PyPI: the index of the settings with its password, and the extra one with netrc',
      {
        of: 'pypi',
        on: {
          programs: {
            'pip config list':
              "global.index-url='https://me:se%40cret@py.test/simple'\nglobal.extra-index-url='https://extra.test/simple/'",
          },
          files: { '/home/u/.netrc': 'machine other login a password b\nmachine extra.test login u password p' },
        },
        are: [
          { url: 'https://py.test/simple/', authorization: basic('me:se@cret') },
          { url: 'https://extra.test/simple/', authorization: basic('u:p') },
        ],
      },
    ],
    [
      'Go: every proxy, without direct, and what a bar means',
      {
        of: 'go',
        on: { programs: { 'go env GOPROXY': 'https://a.test|https://b.test/x,direct\n' } },
        are: [{ url: 'https://a.test/', fallsBackOnError: true }, { url: 'https://b.test/x/' }],
      },
    ],
    [
      'crates: the replacement of crates-io through two steps, with its token',
      {
        of: 'crates',
        on: {
          files: {
            '/home/u/.cargo/config.toml':
              '[source.crates-io]\nreplace-with = "a"\n[source.a]\nreplace-with = "b"\n[source.b]\nregistry = "sparse+https://crates.test/index/"\n[registries.mine]\nindex = "sparse+https://crates.test/index/"\n',
            '/home/u/.cargo/credentials.toml': '[registries.mine]\ntoken = "t"\n',
          },
        },
        are: [{ url: 'https://crates.test/index/', authorization: 't', download: 'https://crates.test/dl' }],
      },
    ],
    [
      'crates: what Cargo asks by itself',
      {
        of: 'crates',
        on: { index: 'https://crates.test/' },
        are: [{ url: 'https://crates.test/', download: 'https://crates.test/dl' }],
      },
    ],
    ['none where the client is not installed', { of: 'go', on: {}, are: [] }],
  ])('%s', async (_, { of, on, are }) => {
    const upstream = await hostUpstreams({ host: machine(on), fetch: noDownload })(of)
    expect(upstream?.registries.map((registry) => ({ ...registry, url: registry.url.href }))).toEqual(are)
  })
})

import { describe, expect, it } from 'vitest'
import type { HostSettings } from './host-settings.js'
import { hostUpstreams } from './host-upstreams.js'

/** A machine that is nothing but these files, variables and answers of programs. */
function machine(parts: {
  env?: Record<string, string>
  files?: Record<string, string>
  programs?: Record<string, string>
  index?: string
  maven?: { id: string; url: string }
}): HostSettings {
  return {
    env: parts.env ?? {},
    home: '/home/u',
    readFile: async (path) => parts.files?.[path],
    run: async (argv) => parts.programs?.[argv.join(' ')],
    cargoDefaultIndex: async () => parts.index,
    mavenRepository: async () => parts.maven,
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
    [
      'Maven: what Maven says it asks, with the credentials its settings have under that name',
      {
        of: 'maven',
        on: {
          env: { PASSWORD: 'p&q' },
          maven: { id: 'ours', url: 'https://maven.test/releases' },
          files: {
            '/home/u/.m2/settings.xml':
              '<settings><servers><!-- <server><id>ours</id><username>old</username><password>x</password></server> -->' +
              '<server><id>other</id><username>a</username><password>b</password></server>' +
              '<server><id>ours</id><username>u</username><password>$' +
              '{env.PASSWORD}</password></server></servers></settings>',
          },
        },
        are: [{ url: 'https://maven.test/releases/', authorization: basic('u:p&q') }],
      },
    ],
    [
      'Maven: a password that Maven has encrypted is not sent as it is',
      {
        of: 'maven',
        on: {
          maven: { id: 'ours', url: 'https://maven.test/' },
          files: {
            '/home/u/.m2/settings.xml':
              '<server><id>ours</id><username>u</username><password>{COQLCE6DU6GtcS5P=}</password></server>',
          },
        },
        are: [{ url: 'https://maven.test/' }],
      },
    ],
    ['none where the client is not installed', { of: 'go', on: {}, are: [] }],
  ])('%s', async (_, { of, on, are }) => {
    const upstream = await hostUpstreams({ host: machine(on), fetch: noDownload })(of)
    expect(upstream?.registries.map((registry) => ({ ...registry, url: registry.url.href }))).toEqual(are)
  })

  it('Maven is asked once, and again when its settings have changed', async () => {
    const files: Record<string, string> = {}
    let asked = 0
    const host = { ...machine({ files }), mavenRepository: async () => ({ id: 'r', url: `https://m${++asked}.test/` }) }
    const upstream = hostUpstreams({ host, freshMs: 0 })
    const urls = async () => (await upstream('maven'))?.registries.map(({ url }) => url.href)
    expect([await urls(), await urls()]).toEqual([['https://m1.test/'], ['https://m1.test/']])
    files['/home/u/.m2/settings.xml'] = '<settings/>'
    expect(await urls()).toEqual(['https://m2.test/'])
  })

  it('a client that did not answer in time is asked again for the next package', async () => {
    let asked = 0
    const run = async (): Promise<string> => {
      if (asked++ === 0) throw new Error('npm config get registry did not answer within 120 s')
      return 'https://npm.test/'
    }
    const upstream = hostUpstreams({ host: { ...machine({}), run } })
    await expect(upstream('npm')).rejects.toThrow('did not answer')
    expect((await upstream('npm'))?.registries).toMatchObject([{ url: new URL('https://npm.test/') }])
  })
})

import { describe, expect, it } from 'vitest'
import { keyFileRule } from '../../packages/tasks/src/environment/build/environment-key.js'
import { parseEnvironmentFile } from '../../packages/tasks/src/environment/environment-file.js'
import { readForeignEnvironment } from '../../packages/tasks/src/environment/foreign/read-foreign.js'
import { wantedTools } from '../../packages/tasks/src/environment/tools/wanted-tools.js'

/** Each of these took minutes or for ever: time in which the one process of the platform answers no request. */
const limitMs = 20_000
const guardMs = 600_000

function within<T>(work: () => T): T {
  const start = performance.now()
  const result = work()
  expect(performance.now() - start).toBeLessThan(limitMs)
  return result
}

const lines = (count: number, line: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => line(index)).join('\n')

describe('a file of a repository that is written to hold the platform up is read at once', () => {
  it.each<{ when: string; text: string; says: RegExp }>([
    {
      when: 'six thousand variables with names that are none',
      text: `version: 1\nenv:\n${lines(6_000, (index) => `  1${index}: []`)}`,
      says: /line 3, column 3: env\.10: its name must be the name of a variable/,
    },
    {
      when: 'six thousand fields that there are none of',
      text: `version: 1\n${lines(6_000, (index) => `k${index}: 1`)}`,
      says: /there is no field "k0", .*"k9", and 5990 more/,
    },
  ])('an environment file with $when', { timeout: guardMs }, ({ text, says }) => {
    const read = (): unknown => {
      try {
        return parseEnvironmentFile(text)
      } catch (error) {
        return error
      }
    }
    const refusal = within(read) as Error
    expect(refusal.message).toMatch(says)
    expect(refusal.message.length).toBeLessThan(1_000)
  })

  it.each<{ when: string; text: string }>([
    { when: 'comments', text: `{"a": [1,${'/**/'.repeat(32)}2]}` },
    { when: 'comments that begin and never end', text: `{"a": 1} ${'/* '.repeat(20_000)}` },
    { when: 'texts that begin and never end', text: `{"a": 1} ${'"\\'.repeat(30_000)}` },
  ])('a devcontainer.json with rows of $when', { timeout: guardMs }, ({ text }) => {
    const path = '.devcontainer/devcontainer.json'
    const read = (content: string) => readForeignEnvironment([{ path, text: content }])?.source
    within(() => {
      try {
        read(text)
      } catch (error) {
        expect(error).toMatchObject({ code: 'EnvironmentInvalid' })
      }
    })
    expect(read('{"onCreateCommand": "make", /* , } */ // last\n}')).toBe(path)
  })

  it('version files of empty lines and of endless versions', { timeout: guardMs }, () => {
    const empty = '\n'.repeat(64_000)
    const files = ['', 'web/', 'api/', 'lib/'].flatMap((part) => [
      { path: `${part}rust-toolchain.toml`, text: empty },
      { path: `${part}.sdkmanrc`, text: empty },
      { path: `${part}.nvmrc`, text: `1${'.x'.repeat(32_000)}y` },
      { path: `${part}.python-version`, text: `3${'.1'.repeat(32_000)}` },
      { path: `${part}go.mod`, text: `go 1${'.1'.repeat(32_000)}` },
    ])
    expect(within(() => wantedTools({}, '', files))).toEqual([])
    const honest = wantedTools({}, '', [{ path: 'rust-toolchain.toml', text: '\n[toolchain]\n  channel = "1.80"\n' }])
    expect(honest).toMatchObject([{ name: 'rust', version: '1.80' }])
  })

  it.each<{ when: string; named?: string[]; setup: string }>([
    { when: 'a set-up of thirty thousand words', setup: 'a.b '.repeat(16_000) },
    { when: 'key files with rows of slashes', named: Array(60).fill(`a${'/'.repeat(990)}b`), setup: 'make' },
  ])('$when, beside twenty thousand files', { timeout: guardMs }, ({ named, setup }) => {
    const files = Array.from({ length: 20_000 }, (_, index) => `src/${index % 50}/file${index}.ts`)
    const isKeyFile = keyFileRule({ named: named && [...named, 'deps/'], setup: `${setup} ./x/y.sh`, source: '' })
    expect(within(() => [...files, 'deps/one', 'x/y.sh', 'z/x/y.sh'].filter(isKeyFile))).toEqual(
      named ? ['deps/one', 'x/y.sh', 'z/x/y.sh'] : ['x/y.sh', 'z/x/y.sh'],
    )
  })
})

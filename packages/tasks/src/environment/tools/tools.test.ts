import { describe, expect, it } from 'vitest'
import { readFoundTools } from './find-tools.js'
import { type FoundTool, resolveTools, toolsSentence } from './resolve-tools.js'
import { type WantedTool, wantedTools } from './wanted-tools.js'

describe('wantedTools', () => {
  it.each<{ file: string; text: string; wants: string[] }>([
    { file: '.nvmrc', text: 'v22.3.0\n', wants: ['node 22.3.0'] },
    { file: '.nvmrc', text: 'lts/jod\n', wants: ['node 22'] },
    { file: '.nvmrc', text: 'lts/*\n', wants: ['node '] },
    { file: '.nvmrc', text: 'system\n', wants: [] },
    { file: '.nvmrc', text: '\uFEFFv20.11.0\r\n', wants: ['node 20.11.0'] },
    { file: '.node-version', text: '# ours\n20.x\n', wants: ['node 20'] },
    { file: '.python-version', text: '3.11.7\n3.10\n', wants: ['python 3.11.7'] },
    { file: '.python-version', text: 'cpython-3.12\n', wants: ['python 3.12'] },
    { file: 'rust-toolchain', text: '1.95\n', wants: ['rust 1.95'] },
    { file: 'rust-toolchain', text: '[toolchain]\nchannel = "nightly-2026-01-01"\n', wants: ['rust nightly'] },
    {
      file: 'rust-toolchain.toml',
      text: '[toolchain]\nchannel = "stable"\nprofile = "minimal"\n',
      wants: ['rust stable'],
    },
    { file: 'go.mod', text: 'module p\n\ngo 1.25.1\n\ntoolchain go1.25.3\n', wants: ['go 1.25.1+'] },
    { file: 'go.mod', text: 'module p\n', wants: [] },
    { file: '.sdkmanrc', text: 'java=17.0.9-tem\nmaven=3.9\n', wants: ['java 17.0.9'] },
    { file: '.java-version', text: '21\n', wants: ['java 21'] },
    { file: '.java-version', text: '1.8\n', wants: ['java 8'] },
    {
      file: '.tool-versions',
      text: 'nodejs 22.1.0\ngolang 1.25 # c\njava temurin-17.0.9+9\nruby 3.3\npython system\nconstructor 1\n',
      wants: ['node 22.1.0', 'go 1.25', 'java 17.0.9'],
    },
    {
      file: 'mise.toml',
      text: '[env]\nnode = "1"\n[tools]\nnode = "22" # ours\npython = ["3.12", "3.11"]\n"npm:prettier" = "3"\ngo={ os=["linux"], version="1.25" }\njava = "temurin-21"\nuv = "latest"\n[tools.rust]\nversion = "1.90"\nprofile = "minimal"\n[settings]\npython = "2"\n',
      wants: ['node 22', 'python 3.12', 'go 1.25', 'java 21', 'rust 1.90'],
    },
    { file: '.mise.toml', text: '[tools]\nnode = { version = "lts/jod" }\n', wants: ['node 22'] },
    { file: 'mise.toml', text: 'node = "22"\n', wants: [] },
  ])('$file with $text', ({ file, text, wants }) => {
    const found = wantedTools({}, '', [{ path: file, text }])
    expect(found.map(({ name, version, isMinimum }) => `${name} ${version}${isMinimum ? '+' : ''}`)).toEqual(wants)
  })

  it('the environment file wins over version files, and those of a part over those of the root', () => {
    const found = wantedTools({ node: '22' }, 'env.yaml', [
      { path: 'web/.python-version', text: '3.12' },
      { path: '.python-version', text: '3.11' },
      { path: '.nvmrc', text: '18' },
    ])
    expect(found.map(({ name, version, wantedBy, isRequired }) => [name, version, wantedBy, isRequired])).toEqual([
      ['node', '22', 'env.yaml', true],
      ['python', '3.12', 'web/.python-version', false],
    ])
  })
})

const want = (name: WantedTool['name'], version: string, more: Partial<WantedTool> = {}): WantedTool => ({
  ...{ name, version, wantedBy: 'file', isMinimum: false, isRequired: false },
  ...more,
})
const has = (name: FoundTool['name'], version: string, bin = ''): FoundTool => ({ name, version, bin })

describe('resolveTools', () => {
  it.each<{ when: string; wanted: WantedTool; found: FoundTool[]; uses?: string; warns?: string; misses?: string }>([
    {
      when: 'the machine has it',
      wanted: want('node', '20'),
      found: [has('node', '20.1.0'), has('node', '20.9.0', '/t/bin')],
      uses: '20.1.0',
    },
    {
      when: 'one that was added has it',
      wanted: want('node', '22'),
      found: [has('node', '20.1.0'), has('node', '22.1.0', '/a/bin'), has('node', '22.10.0', '/b/bin')],
      uses: '22.10.0',
    },
    { when: '2 is no front of 22', wanted: want('node', '2'), found: [has('node', '22.1.0')], warns: 'ToolMissing' },
    {
      when: 'a version file names another patch',
      wanted: want('python', '3.11.9'),
      found: [has('python', '3.11.2')],
      uses: '3.11.2',
      warns: 'ToolDiffers',
    },
    {
      when: 'the environment file names another patch',
      wanted: want('python', '3.11.9', { isRequired: true }),
      found: [has('python', '3.11.2')],
      misses: 'python 3.11.9 wanted by file; this node has 3.11.2',
    },
    {
      when: 'go.mod is content with a newer one',
      wanted: want('go', '1.25', { isMinimum: true }),
      found: [has('go', '1.26.8')],
      uses: '1.26.8',
    },
    {
      when: 'go.mod wants a newer one',
      wanted: want('go', '1.27', { isMinimum: true, isRequired: true }),
      found: [],
      misses: 'go 1.27 wanted by file; this node has none',
    },
    {
      when: 'stable Rust is no nightly',
      wanted: want('rust', 'stable'),
      found: [has('rust', '1.97.0-nightly', '/n/bin'), has('rust', '1.95.0', '/s/bin')],
      uses: '1.95.0',
    },
    {
      when: 'nightly Rust is a nightly',
      wanted: want('rust', 'nightly'),
      found: [has('rust', '1.97.0-nightly', '/n/bin'), has('rust', '1.95.0')],
      uses: '1.97.0-nightly',
    },
  ])('when $when', ({ wanted, found, uses, warns, misses }) => {
    const { tools, warnings, missing } = resolveTools([wanted], found)
    expect(tools.map(({ version }) => version)).toEqual(uses ? [uses] : [])
    expect(warnings.map(({ code }) => code)).toEqual(warns ? [warns] : [])
    expect(missing?.message).toBe(misses)
  })

  it('names the command that adds what is missing: fetched where a registry has it, else from this machine', () => {
    const missing = (name: WantedTool['name'], version: string) =>
      resolveTools([want(name, version, { isRequired: true })], []).missing?.hint
    expect(missing('go', '1.25')).toBe('Add with: corral env tools install go@1.25')
    expect(missing('rust', '1.95')).toBe('Add with: corral env tools --add rust@1.95')
  })

  it('gives tools the variables they need, and says in an event which are of the machine', () => {
    const { tools } = resolveTools(
      [want('java', '17'), want('go', '1')],
      [has('java', '17.0.1', '/j/bin'), has('go', '1.26')],
    )
    expect(tools.map(({ env }) => env)).toEqual([{ JAVA_HOME: '/j' }, { GOTOOLCHAIN: 'local' }])
    expect(toolsSentence(tools)).toBe('java 17.0.1 (file), go 1.26 of the machine (file)')
  })
})

it('readFoundTools takes lines of tools and nothing else', () => {
  const text = 'node v20.1.0\ngo 1.26.8 /usr/local/go/bin\nrust \npython 3.11 bin\nbash 5.2\nnode 1 /a b\nuv rm -rf\n'
  expect(readFoundTools(text)).toEqual([has('node', '20.1.0'), has('go', '1.26.8', '/usr/local/go/bin')])
})

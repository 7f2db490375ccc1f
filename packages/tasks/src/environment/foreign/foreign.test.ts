import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from '@corral/testing'
import { describe, expect, it } from 'vitest'
import { foreignFiles, readForeignEnvironment } from './read-foreign.js'

const copilot = '.github/workflows/copilot-setup-steps.yml'
const steps = (text: string): string =>
  `on: workflow_dispatch\njobs:\n  copilot-setup-steps:\n    runs-on: ubuntu-latest\n    steps:\n${text}`

const read = (path: string, text: string) => readForeignEnvironment([{ path, text }])

describe('copilot-setup-steps', () => {
  it('gives commands and versions of tools; the checkout is done already', () => {
    const found = read(
      copilot,
      steps(`      - name: Checkout
        uses: actions/checkout@v5
      - uses: actions/setup-node@v4
        with: {node-version: "22.x", cache: npm}
      - uses: actions/setup-go@v5
        with: {go-version-file: go.mod}
      - run: npm ci
      - name: Build
        working-directory: web app
        run: |
          npm run build
        env: {CI: 1}
`),
    )
    expect(found).toMatchObject({
      source: copilot,
      request: {
        setup: "(\nnpm ci\n)\n(\ncd -- 'web app'\nexport CI='1'\nnpm run build\n)",
        tools: { node: '22' },
        egress: { setup: ['packages'], agent: [] },
        secrets: [],
      },
    })
  })

  it('a step that installs a program is a command, and one that caches is nothing', () => {
    const found = read(
      copilot,
      steps(`      - uses: actions/checkout@v5
      - uses: actions/cache@v4
        with: {path: ~/.npm, key: "npm-$\{{ hashFiles('package-lock.json') }}"}
      - uses: astral-sh/setup-uv@v6
        with: {version: "0.9.5", enable-cache: true, python-version: "3.12"}
      - uses: pnpm/action-setup@v4
        with: {version: 10}
      - uses: Swatinem/rust-cache@v2
      - uses: dtolnay/rust-toolchain@4be9e76fd7c4901c61fb841f559994984270fce7
        with: {components: clippy}
      - run: pnpm install
`),
    )
    expect(found?.request).toMatchObject({
      setup: [
        '(\npip install uv==0.9.5\n)',
        '(\nnpm install --global --prefix ~/.local pnpm@10\n)',
        '(\npnpm install\n)',
      ].join('\n'),
      tools: { rust: 'stable', python: '3.12' },
    })
  })

  it('pnpm without a version is the one that package.json names', async () => {
    const { setup = '' } = read(copilot, steps('      - uses: pnpm/action-setup@v4\n'))?.request ?? {}
    await using directory = temporaryDirectory()
    writeFileSync(join(directory.path, 'package.json'), '{"packageManager":"pnpm@9.15.0+sha512.76e2"}')
    const said = execFileSync('bash', ['-euc', setup.replace('npm install', 'echo install')], {
      cwd: directory.path,
      encoding: 'utf8',
    })
    expect(said).toMatch(/ pnpm@9\.15\.0\n$/)
  })

  it('gives the variables of the workflow and the directory that its steps default to', () => {
    const workflow = [
      'env: {LEVEL: workflow, REGISTRY: main}',
      'defaults: {run: {shell: bash}}',
      'jobs:',
      '  copilot-setup-steps:',
      '    env: {LEVEL: job}',
      '    defaults: {run: {working-directory: web}}',
      '    steps: [{uses: actions/checkout@v5}, {run: npm ci}, {run: make, working-directory: api}]',
    ].join('\n')
    expect(read(copilot, workflow)?.request).toMatchObject({
      setup: '(\ncd -- web\nnpm ci\n)\n(\ncd -- api\nmake\n)',
      env: { LEVEL: 'job', REGISTRY: 'main' },
    })
  })

  it('a step that changes the directory or ends itself does not do so for the next', () => {
    const { setup = '' } =
      read(
        copilot,
        steps(`      - run: cd / && export A=1\n      - run: exit 0\n      - run: echo "$PWD $\{A-no A}"\n`),
      )?.request ?? {}
    expect(execFileSync('bash', ['-euo', 'pipefail', '-c', setup], { cwd: '/usr', encoding: 'utf8' })).toBe(
      '/usr no A\n',
    )
  })

  it.each([
    {
      what: 'another default',
      text: 'jobs: {copilot-setup-steps: {defaults: {run: {colour: red}}, steps: []}}',
      says: 'jobs.copilot-setup-steps.defaults.run.colour is not supported',
    },
    {
      what: 'an expression in the variables of the workflow',
      text: `env: {A: "$\{{ secrets.A }}"}\njobs: {copilot-setup-steps: {steps: []}}`,
      says: `env.A has the expression $\{{ secrets.A }}`,
    },
  ])('stops at $what and names it', ({ text, says }) => {
    expect(() => read(copilot, text)).toThrow(
      expect.objectContaining({ code: 'EnvironmentInvalid', message: expect.stringContaining(says) }),
    )
  })

  it.each([
    {
      what: 'a dated toolchain of Rust',
      text: '      - uses: dtolnay/rust-toolchain@nightly-2025-01-01\n',
      says: 'steps[0] asks for Rust nightly-2025-01-01',
    },
    {
      what: 'another action',
      text: '      - uses: docker/login-action@v3\n',
      says: 'steps[0] uses docker/login-action@v3',
    },
    { what: 'a condition', text: '      - {run: x, if: always()}\n', says: 'steps[0].if is not supported' },
    {
      what: 'an expression',
      text: `      - run: echo $\{{ secrets.TOKEN }}\n`,
      says: `steps[0].run has the expression $\{{ secrets.TOKEN }}`,
    },
    {
      what: 'a range of versions',
      text: '      - {uses: actions/setup-python@v5, with: {python-version: ">=3.10"}}\n',
      says: 'python-version is >=3.10',
    },
    {
      what: 'what later steps shall find',
      text: '      - run: echo "A=1" >> "$GITHUB_ENV"\n',
      says: 'steps[0].run writes to GITHUB_ENV',
    },
    {
      what: 'a checkout of another repository',
      text: '      - {uses: actions/checkout@v5, with: {repository: acme/data, path: data}}\n',
      says: 'steps[0].with.repository is not supported',
    },
    { what: 'another shell', text: '      - {run: x, shell: pwsh}\n', says: 'shell is pwsh' },
  ])('stops at $what and names it', ({ text, says }) => {
    expect(() => read(copilot, steps(text))).toThrow(
      expect.objectContaining({ code: 'EnvironmentInvalid', message: expect.stringContaining(says) }),
    )
  })

  it.each([
    {
      what: 'containers',
      text: 'jobs: {copilot-setup-steps: {container: node, steps: []}}',
      says: 'container is not supported',
    },
    { what: 'no such job', text: 'jobs: {build: {steps: []}}', says: 'there is no job copilot-setup-steps' },
    { what: 'no YAML', text: 'jobs: [', says: 'line ' },
  ])('stops where it has $what', ({ text, says }) => {
    expect(() => read(copilot, text)).toThrow(expect.objectContaining({ message: expect.stringContaining(says) }))
  })
})

it('a devcontainer gives its commands and plain variables, never what runs on the host or grants anything', () => {
  const found = read(
    '.devcontainer/devcontainer.json',
    `{
      // a "comment" // with quotes
      "name": "app", "image": "mcr.example/x:1", /* here: { */
      "features": {"ghcr.example/node:1": {"version": "20"}},
      "initializeCommand": "rm -rf ~",
      "onCreateCommand": ["bash", "-c", "echo 'one // not a comment'"],
      "updateContentCommand": {"a": "make a", "b": "make b"},
      "postCreateCommand": "cd \${containerWorkspaceFolder} && npm ci",
      "postStartCommand": "npm run dev",
      "containerEnv": {"MODE": "dev", "KEY": "\${localEnv:KEY}", "PATH": "/x"},
      "mounts": ["source=/,target=/host,type=bind"], "runArgs": ["--privileged"],
      "customizations": {"vscode": {}},
    }`,
  )
  expect(found?.request).toMatchObject({
    setup: `(\nbash -c 'echo '\\''one // not a comment'\\'''\n)\n(\nmake a\n)\n(\nmake b\n)\n(\ncd $PWD && npm ci\n)`,
    env: { MODE: 'dev' },
    start: [{ run: 'npm run dev' }],
    egress: { setup: ['packages'], agent: [] },
  })
  expect(found?.leftOut).toEqual(
    expect.arrayContaining([
      'image',
      'features',
      'initializeCommand',
      'mounts',
      'runArgs',
      'containerEnv.KEY',
      'containerEnv.PATH',
    ]),
  )
})

it('a Cursor environment gives install and start, OpenHands its script', () => {
  const cursor = read('.cursor/environment.json', '{"install": "npm ci", "start": "npm run dev", "terminals": []}')
  expect(cursor).toMatchObject({
    request: { setup: 'npm ci', start: [{ run: 'npm run dev' }] },
    leftOut: ['terminals'],
  })
  expect(read('.openhands/setup.sh', 'pip install x')?.request.setup).toBe('bash .openhands/setup.sh')
})

it.each([
  { path: '.cursor/environment.json', text: '{"install": ["npm", "ci"], "start": 5}', leftOut: ['install', 'start'] },
  {
    path: '.devcontainer.json',
    text: '{"postCreateCommand": 5, "onCreateCommand": {"a": "x", "b": 7}, "updateContentCommand": ""}',
    leftOut: ['postCreateCommand', 'onCreateCommand'],
  },
])('commands of $path that are none are named as left out', ({ path, text, leftOut }) => {
  expect(read(path, text)?.leftOut).toEqual(leftOut)
})

it('words of a devcontainer command find the workspace, and no shell reads the rest of them', () => {
  const words = ['printf', '%s', `$\{containerWorkspaceFolder}/a b/$HOME`]
  const { request } = read('.devcontainer.json', `\uFEFF${JSON.stringify({ postCreateCommand: words })}`) ?? {}
  const said = execFileSync('bash', ['-euc', request?.setup ?? 'false'], { cwd: '/usr', encoding: 'utf8' })
  expect(said).toBe('/usr/a b/$HOME')
})

it.each(['.cursor/environment.json', '.devcontainer.json'])('%s that is no object is refused by name', (path) => {
  expect(() => read(path, '[1]')).toThrow(expect.objectContaining({ message: `${path}: must be an object` }))
  expect(() => read(path, '{')).toThrow(expect.objectContaining({ message: expect.stringContaining('is no JSON') }))
})

it('the first of the files counts, and no other file does', () => {
  const all = [...foreignFiles]
    .reverse()
    .map((path) => ({ path, text: path.endsWith('json') ? '{}' : steps('      - run: x\n') }))
  expect(readForeignEnvironment(all)?.source).toBe(copilot)
  expect(readForeignEnvironment([{ path: 'package.json', text: '{}' }])).toBeUndefined()
})

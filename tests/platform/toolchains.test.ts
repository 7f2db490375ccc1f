import { homedir } from 'node:os'
import { join } from 'node:path'
import type { CreateTaskRequest, TaskView } from '@corral/protocol'
import {
  type GitFixture,
  gitRepository,
  isFullSize,
  type PlatformProcess,
  startPlatformProcess,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@corral/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

interface Listed {
  added: { tool: string; version: string }[]
  found: { tool: string; version: string; directory: string; isShown: boolean }[]
}

let scratch: TemporaryDirectory
let platform: PlatformProcess
let machine: Listed
beforeAll(async () => {
  scratch = temporaryDirectory()
  // The platform has a home of its own; version managers are in that of the user who runs the tests.
  const { HOME = homedir(), RUSTUP_HOME = join(HOME, '.rustup'), PYENV_ROOT = join(HOME, '.pyenv') } = process.env
  platform = await startPlatformProcess({ env: { RUSTUP_HOME, PYENV_ROOT } })
  machine = await tools()
})
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]()
  await scratch?.[Symbol.asyncDispose]()
})

const corral = (...words: string[]) => platform.corral([...words, '--data-dir', platform.dataDir])

async function tools(): Promise<Listed> {
  return JSON.parse((await corral('env', 'tools', '--json')).stdout) as Listed
}

/** A toolchain of a version manager on this machine, which sandboxes do not see by themselves. */
const hidden = (tool: string, like = /./) =>
  machine.found.find((each) => each.tool === tool && !each.isShown && like.test(each.version))

let count = 0
const repository = (files: Record<string, string>): Promise<GitFixture> =>
  gitRepository(join(scratch.path, `repo-${++count}`), files)

async function run(repo: GitFixture, command: string, more: Partial<CreateTaskRequest> = {}) {
  const task: TaskView = await platform.api.run({
    repo: repo.path,
    task: 'Look',
    agent: { name: 'command', command },
    ...more,
  })
  const events = await platform.api.allEvents(task.id)
  const said = events.flatMap((event) => (event.type === 'output' ? [event.text] : [])).join('\n')
  const stages = events.flatMap((event) => (event.type === 'stage' ? [event.detail ?? ''] : [])).join('\n')
  return { task, events, said, stages }
}

const environment = (text: string): Record<string, string> => ({ '.corral/environment.yaml': `version: 1\n${text}\n` })

describe('toolchains of version managers', () => {
  it('rustup: cargo tests a crate with the version the environment file names, with a home of its own', async (context) => {
    const rust = hidden('rust', /^[\d.]+$/)
    if (!rust) return context.skip('this machine has no toolchain of rustup')
    const repo = await repository({
      ...environment(`tools: {rust: "${rust.version}"}\nsetup: cargo fetch`),
      'Cargo.toml': '[package]\nname = "p"\nversion = "0.1.0"\nedition = "2021"\n',
      'src/lib.rs': '#[test]\nfn works() { assert_eq!(1 + 1, 2); }\n',
      '.gitignore': 'target\nCargo.lock\n',
    })
    const without = await run(repo, 'true')
    expect(without.task).toMatchObject({ status: 'FAILED', cause: { code: 'ToolMissing' } })
    expect(without.task.cause?.message).toBe(
      `rust ${rust.version} wanted by .corral/environment.yaml; this node has none`,
    )
    const command = `env tools --add rust@${rust.version}`
    expect(without.task.cause?.hint).toContain(`Add with: corral ${command}`)

    expect(await corral(...command.split(' '))).toMatchObject({ code: 0 })
    const { task, said, stages } = await run(repo, 'cargo test --offline; echo "home $CARGO_HOME"; which cargo')
    expect(task, said).toMatchObject({ status: 'SUCCEEDED' })
    expect(said).toContain('test works ... ok')
    expect(said).toContain(`/opt/corral/toolchains/rust/${rust.version}/bin/cargo`)
    expect(stages).toContain(`tools: rust ${rust.version} (.corral/environment.yaml)`)
  })

  it('pyenv: .python-version chooses it, its programs and virtual environments work, packages of its owner stay away', async (context) => {
    const python = hidden('python', /^3\.1[1-9]\./)
    if (!python) return context.skip('this machine has no Python of pyenv')
    await corral('env', 'tools', '--add', python.directory)
    const repo = await repository({
      '.python-version': `${python.version}
`,
    })
    const { task, said } = await run(
      repo,
      [
        'python3 --version',
        'python3 -m venv /tmp/venv && /tmp/venv/bin/python -c "import ssl, sqlite3, sys; print(sys.base_prefix)"',
        'head -n 1 "$(command -v pip3)"; pip3 --version',
        'touch /opt/corral/toolchains/python/x 2>&1 || true',
      ].join('; '),
    )
    expect(task, said).toMatchObject({ status: 'SUCCEEDED' })
    expect(said).toContain(`Python ${python.version}`)
    expect(said).toContain(`/opt/corral/toolchains/python/${python.version}\n`)
    expect(said).toContain('Read-only file system')
    expect(said).not.toContain(python.directory)
  })
})

describe('what a repository asks for', () => {
  it('go.mod is content with a newer Go of the machine, and the events say which one is used', async (context) => {
    const go = machine.found.find(({ tool, isShown }) => tool === 'go' && isShown)
    if (!go) return context.skip('this machine has no Go below /usr')
    const repo = await repository({ 'go.mod': 'module p\n\ngo 1.18\n' })
    const { task, said, stages } = await run(repo, 'go version; echo "toolchain $GOTOOLCHAIN"')
    expect(task, said).toMatchObject({ status: 'SUCCEEDED' })
    expect(said).toContain('toolchain local')
    expect(stages).toMatch(/tools: go [\d.]+( of the machine)? \(go\.mod\)/)
  })

  if (isFullSize)
    it('a version file that nothing fits is told, and told again where set-up fails', async () => {
      const repo = await repository({ '.nvmrc': '99\n', '.corral/setup': 'exit 3\n' })
      const { task, events } = await run(repo, 'true')
      expect(task).toMatchObject({ status: 'FAILED', cause: { code: 'SetupFailed' } })
      expect(task.cause?.hint).toContain('node 99 wanted by .nvmrc; this node has ')
      expect(task.cause?.hint).toContain('corral env tools install node@99')
      expect(events.filter((event) => event.type === 'warning' && event.code === 'ToolMissing')).toHaveLength(1)
    })

  it('a toolchain that is removed is gone, and one that is none is refused and changes nothing', async () => {
    const before = (await tools()).added
    const wrong = await corral('env', 'tools', '--add', scratch.path)
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('is no toolchain') })
    const unknown = await corral('env', 'tools', 'install', 'rust@1')
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('no package registry publishes rust') })
    expect((await tools()).added).toEqual(before)
    for (const { tool, version } of before) await corral('env', 'tools', '--remove', `${tool}@${version}`)
    expect((await tools()).added).toEqual([])
  })
})

import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ProjectView, TaskView } from '@corral/protocol'
import {
  gitRepository,
  type PlatformProcess,
  startPlatformProcess,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@corral/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'

let scratch: TemporaryDirectory
let platform: PlatformProcess

/** A user with a signing key. */
beforeAll(async () => {
  scratch = temporaryDirectory()
  const key = join(scratch.path, 'key')
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'test', '-f', key])
  writeFileSync(join(scratch.path, 'signers'), `jane@example.com ${readFileSync(`${key}.pub`, 'utf8')}`)
  const config = join(scratch.path, 'gitconfig')
  writeFileSync(config, `[user]\n\tsigningkey = ${key}.pub\n[gpg]\n\tformat = ssh\n`)
  platform = await startPlatformProcess({ env: { GIT_CONFIG_GLOBAL: config } })
})
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]()
  await scratch?.[Symbol.asyncDispose]()
})

async function corral(args: string[], extra: { stdin?: string; env?: Record<string, string> } = {}) {
  const { env, ...rest } = extra
  const environment = { ...platform.environment(), CORRAL_DATA_DIR: platform.dataDir, ...env }
  const result = await platform.corral(args, { ...rest, env: environment })
  return { ...result, json: () => JSON.parse(result.stdout) as unknown }
}

it('S2-H5: a project is made, used, changed and removed by command line, HTTP and kubectl', async () => {
  const repo = await gitRepository(join(scratch.path, 'repo'))
  await repo.git('config', 'user.name', 'Jane Doe')
  await repo.git('config', 'user.email', 'jane@example.com')
  const made = await corral([
    ...['project', 'create', 'shop', '--repo', repo.path, '--base', 'main', '--json'],
    ...['--command', 'printf "%s|" "$CORRAL_PROMPT" >> NOTES.md', '--instructions', 'Be kind.'],
    ...['--check', 'notes=test -s NOTES.md'],
  ])
  expect(made.code, made.stderr).toBe(0)
  expect(made.json()).toMatchObject({ name: 'shop', repo: repo.path, instructions: 'Be kind.' })

  const ran = await corral(['run', 'Say hello', '--project', 'shop', '--json', '--instructions', 'Be brief.'])
  expect(ran.code, ran.stderr).toBe(0)
  const task = JSON.parse(ran.stdout.trim().split('\n').at(-1)!) as TaskView
  expect(task).toMatchObject({
    ...{ status: 'SUCCEEDED', project: 'shop', repo: repo.path, instructions: 'Be kind.\n\nBe brief.' },
    ...{ author: { name: 'Jane Doe', email: 'jane@example.com' }, checks: { rounds: [{ passed: true }] } },
  })
  expect(await repo.git('log', '-1', '--format=%an <%ae> %cn %s', task.branch!)).toBe(
    'Jane Doe <jane@example.com> Jane Doe Say hello',
  )

  const table = await platform.kubectl(['get', 'projects'])
  expect(table.stdout).toMatch(/^NAME +REPO +BASE +AGENT +AGE\nshop +\S+repo +main +command /)
  const listed = await platform.kubectl(['get', 'agenttasks', '-l', 'corral.dev/project=shop', '-o', 'name'])
  expect(listed.stdout.trim()).toBe(`agenttask.corral.dev/${task.id}`)
  const patch = '{"spec":{"author":{"name":"Bot","email":"bot@example.com"},"sign":true}}'
  expect((await platform.kubectl(['patch', 'project', 'shop', '--type=merge', '-p', patch])).code).toBe(0)

  const read = await platform.api.request('GET', '/projects/shop')
  const etag = read.headers.get('etag')!
  expect(read.json).toMatchObject({ sign: true, author: { name: 'Bot' } })
  const editor = join(scratch.path, 'editor')
  writeFileSync(editor, '#!/bin/sh\nsed -i "s/Be kind/Be friendly/" "$1"\n', { mode: 0o755 })
  const edited = await corral(['project', 'edit', 'shop'], { env: { EDITOR: editor } })
  expect(edited.stdout, edited.stderr).toBe('changed project shop\n')
  const late = await platform.api.request('PATCH', '/projects/shop', {
    body: { instructions: 'Be late.' },
    headers: { 'if-match': etag },
  })
  expect(late).toMatchObject({ status: 409, json: { error: { code: 'ProjectChanged' } } })
  expect((await corral(['project', 'get', 'shop'])).stdout).toContain('instructions: Be friendly.')

  // Signed outside the sandbox: the agent's own commit too, with its own message.
  const own = await platform.api.run({
    ...{ project: 'shop', task: 'Two steps' },
    agent: { name: 'command', command: 'echo 1 > NOTES.md; git add .; git commit -qm "My own words"; echo 2 > more' },
  })
  expect(own).toMatchObject({ status: 'SUCCEEDED', sign: true, pushed: true })
  expect(await repo.git('rev-parse', own.branch!)).toBe(own.commit)
  const signers = `gpg.ssh.allowedSignersFile=${join(scratch.path, 'signers')}`
  const log = await repo.git('-c', signers, 'log', '--format=%G?|%an|%cn|%s', `main..${own.branch}`)
  expect(log.split('\n')).toEqual(['G|Bot|Jane Doe|Two steps', 'G|Bot|Jane Doe|My own words'])

  expect((await corral(['task', 'list', '--project', 'shop', '--json'])).json()).toMatchObject({
    tasks: [{ id: own.id }, { id: task.id }],
  })
  expect(
    await corral(['project', 'rm', 'nosuch', 'shop', 'shop']),
    'one that is not there, one named twice',
  ).toMatchObject({
    code: 2,
    stdout: 'removed shop\n',
    stderr: expect.stringContaining('there is no project "nosuch"'),
  })
  expect((await platform.api.request('GET', '/tasks?project=shop')).json).toMatchObject({ tasks: [{}, {}] })
})

it.each<{ what: string; args: string[]; code: number; says: RegExp }>([
  { what: 'a task of no project', args: ['run', 'x', '--project', 'none'], code: 2, says: /no project "none"/ },
  { what: 'a setting nobody knows', args: ['project', 'edit', 'p', '--set', 'a=b'], code: 2, says: /no setting "a"/ },
  { what: 'a project that is not there', args: ['project', 'get', 'none'], code: 2, says: /ProjectNotFound/ },
  { what: 'a name that is none', args: ['project', 'create', 'No Name'], code: 2, says: /lower-case letters/ },
  { what: 'an author without an address', args: ['run', 'x', '--author', 'Jane'], code: 2, says: /--author: "Jane"/ },
])('$what is refused', async ({ args, code, says }) => {
  const result = await corral(args)
  expect({ code: result.code, stderr: result.stderr }).toEqual({ code, stderr: expect.stringMatching(says) })
})

it('a change in the editor that cannot be taken is not lost', async () => {
  await corral(['project', 'create', 'kept'])
  const editor = join(scratch.path, 'wrong-editor')
  writeFileSync(editor, '#!/bin/sh\necho "colour: red" >> "$1"\n', { mode: 0o755 })
  const edited = await corral(['project', 'edit', 'kept'], { env: { EDITOR: editor, TMPDIR: scratch.path } })
  expect(edited.stderr).toMatch(/was not changed: settings: there is no field "colour"/)
  const file = /What you wrote is in (\S+):/.exec(edited.stderr)?.[1] ?? ''
  expect(readFileSync(file, 'utf8')).toContain('colour: red')
  const { json } = await platform.api.request('GET', '/projects')
  expect((json as { projects: ProjectView[] }).projects.map(({ name }) => name)).toEqual(['kept'])
})

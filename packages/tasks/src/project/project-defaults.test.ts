import type { CreateTaskRequest, ProjectSettings } from '@corral/protocol'
import { expect, it } from 'vitest'
import { withProject } from './project-defaults.js'
import { projectSpecFrom, settingsFrom } from './project-object.js'
import { patched } from './project-service.js'

const author = { name: 'Jane', email: 'jane@example.com' }
const bot = { name: 'Bot', email: 'bot@example.com' }

/** One setting of every kind, so that what is forgotten in a conversion is missed. */
const all = {
  description: 'the shop',
  repo: 'https://code.example/shop.git',
  submodules: 'recursive',
  lfs: true,
  base_branch: 'develop',
  agent: { name: 'codex', model: 'm1', effort: 'high' },
  instructions: 'Write tests.',
  author,
  committer: bot,
  sign: true,
  environment_file: 'api/.corral/environment.yaml',
  setup: 'make deps',
  setup_timeout_seconds: 60,
  checks: [{ name: 'test', command: 'make test', timeout_seconds: 9 }],
  check_rounds: 0,
  on_failed_checks: 'no-push',
  egress: ['files.example.com:443'],
  setup_egress: ['packages'],
  runtime_class_name: 'gvisor',
  minimum_tier: 'bubblewrap',
} satisfies ProjectSettings

it('keeps every setting on its way into a Project and back', () => {
  const spec = projectSpecFrom(all)
  expect(settingsFrom({ apiVersion: 'corral.dev/v1alpha1', kind: 'Project', spec })).toEqual(all)
})

it('gives a task that says nothing all of it', () => {
  const { description: _, ...given } = all
  expect(withProject('shop', all, { task: 'x', project: 'shop' })).toEqual({ ...given, project: 'shop', task: 'x' })
})

it.each<{ when: string; project?: ProjectSettings; request: Partial<CreateTaskRequest>; gets: object }>([
  { when: 'the request has an author', request: { author: bot }, gets: { author: bot, committer: bot } },
  { when: 'the request grants nothing', request: { egress: [] }, gets: { egress: [] } },
  { when: 'the request turns signing off', request: { sign: false }, gets: { sign: false } },
  {
    when: 'both have instructions, the project’s come first',
    request: { instructions: 'Be brief.' },
    gets: { instructions: 'Write tests.\n\nBe brief.' },
  },
  {
    when: 'the request names the same agent, options are put together',
    request: { agent: { name: 'codex', model: 'm2' } },
    gets: { agent: { name: 'codex', model: 'm2', effort: 'high' } },
  },
  {
    when: 'the request names the same agent by its name alone',
    request: { agent: 'codex' },
    gets: { agent: { name: 'codex', model: 'm1', effort: 'high' } },
  },
  {
    when: 'the request names another agent, it gets none of the options',
    request: { agent: 'claude' },
    gets: { agent: 'claude' },
  },
  {
    when: 'the request names another repository, it gets nothing that is about the first one',
    request: { repo: '/other' },
    gets: { repo: '/other', base_branch: undefined, submodules: undefined, lfs: undefined, setup: 'make deps' },
  },
  {
    when: 'a value of the request is 0',
    project: { ...all, check_rounds: 3 },
    request: { check_rounds: 0 },
    gets: { check_rounds: 0 },
  },
])('when $when', ({ project = all, request, gets }) => {
  const { base_branch, submodules, lfs, ...merged } = withProject('shop', project, { task: 'x', ...request })
  expect({ base_branch, submodules, lfs, ...merged }).toMatchObject(gets)
})

it('names what is missing where neither says which repository', () => {
  expect(() => withProject('shop', { setup: 'x' }, { task: 'x', project: 'shop' })).toThrow(
    'repo: is required, since project "shop" names no repository',
  )
})

it('refuses instructions that are too long only together', () => {
  const half = 'x'.repeat(40_000)
  const create = () => withProject('shop', { ...all, instructions: half }, { task: 'x', instructions: half })
  expect(create).toThrow('instructions: must have at most 65536 characters together with those of the project')
})

it.each(['base_branch', 'submodules', 'lfs'] as const)('refuses %s without a repository', (field) => {
  expect(() => projectSpecFrom({ [field]: all[field] })).toThrow(`${field}: goes with repo`)
})

it('changes some settings and takes away what is null', () => {
  expect(patched({ setup: 'a', sign: true, lfs: true }, { setup: 'b', sign: null, lfs: undefined })).toEqual({
    setup: 'b',
  })
})

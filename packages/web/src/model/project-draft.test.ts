import type { ProjectView } from '@corral/protocol'
import { describe, expect, it } from 'vitest'
import { draftOf, emptyProject, newProjectOf, projectProblem, settingsOf } from './project-draft.js'

const project: ProjectView = {
  name: 'shop',
  repo: '/srv/shop',
  base_branch: 'trunk',
  agent: { name: 'claude', model: 'opus', effort: 'high' },
  author: { name: 'Ada', email: 'ada@example.org' },
  checks: [{ name: 'test', command: 'npm test', timeout_seconds: 60 }],
  egress: ['packages.example.com:443'],
  runtime_class_name: 'gvisor',
  resource_version: '7',
  created_at: '2026-01-01T00:00:00Z',
}

describe('a project in a form', () => {
  it('comes back as it was, with the settings the form does not show', () => {
    const { name: _, created_at: __, ...settings } = project
    expect(settingsOf(draftOf(project), project)).toEqual(settings)
  })

  it('loses what is emptied, and the options of an agent that is exchanged', () => {
    const draft = {
      ...draftOf(project),
      agent: 'codex',
      model: '',
      author: '',
      egress: ' ',
      checks: 'lint: npm run lint',
    }
    const { author: _, egress: __, ...rest } = settingsOf(draftOf(project), project)
    expect(settingsOf(draft, project)).toEqual({
      ...rest,
      agent: { name: 'codex' },
      checks: [{ name: 'lint', command: 'npm run lint' }],
    })
  })

  it('is made with a name and nothing that was left empty', () => {
    expect(newProjectOf({ ...emptyProject, name: 'docs', repo: ' /srv/docs ' })).toEqual({
      name: 'docs',
      repo: '/srv/docs',
    })
  })

  it.each([
    { change: { name: '' }, problem: 'A name has small letters, digits and hyphens.' },
    { change: { name: 'My Shop' }, problem: 'A name has small letters, digits and hyphens.' },
    { change: { author: 'Ada' }, problem: 'An author is written as Name <address>.' },
    { change: { checks: 'npm test' }, problem: 'A check is written as name: command, not “npm test”.' },
    { change: {}, problem: undefined },
  ])('says what is wrong: $problem', ({ change, problem }) => {
    expect(projectProblem({ ...draftOf(project), ...change })).toBe(problem)
  })
})

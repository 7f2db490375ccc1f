import { expect, it } from 'vitest'
import { nothingToBuild } from './nothing-to-build.js'

const file = { commit: 'c', text: 'version: 1\nparts:\n  web: {path: web, setup: npm ci}\n' }

it.each([
  {
    when: 'a repository somewhere else has parts',
    spec: { repository: { url: '/srv/two words' } },
    hint: "`corral env build '/srv/two words' --part web`",
  },
  {
    when: 'its branch was named',
    spec: { repository: { url: '/srv/a' }, ref: 'next' },
    hint: '`corral env build /srv/a --ref next --part web`',
  },
  { when: 'the part itself has none', spec: { repository: { url: '/srv/a' }, part: 'web' }, hint: 'without a build' },
])('nothing to build is said with a command that runs in any directory when $when', ({ spec, hint }) => {
  expect(nothingToBuild(file, spec).hint).toContain(hint)
})

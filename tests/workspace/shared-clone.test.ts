import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, it } from 'vitest'

const scripts = fileURLToPath(new URL('../../scripts', import.meta.url))
const clone = mkdtempSync(join(tmpdir(), 'corral-shared-clone-'))
afterAll(() => {
  chmodSync(clone, 0o755)
  rmSync(clone, { recursive: true })
})

it('`./corral` of a clone that belongs to somebody else says who has to set it up, without a stack', () => {
  cpSync(scripts, join(clone, 'scripts'), { recursive: true })
  chmodSync(clone, 0o555)
  // Root may write everywhere: it looks at the clone as somebody else.
  const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const { stderr, status } = spawnSync(process.execPath, [join(clone, 'scripts/setup.mjs'), '--quiet'], {
    cwd: '/',
    encoding: 'utf8',
    ...nobody,
  })
  expect(stderr).toMatch(/^setup: \S+ is not set up [^\n]*\(EACCES\)\. Have its owner run `npm run setup`[^\n]*\n$/)
  expect(status).toBe(1)
})

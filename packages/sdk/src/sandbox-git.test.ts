import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { SandboxFiles } from './sandbox-files.js'
import { SandboxGit } from './sandbox-git.js'

let repository: string
beforeEach(() => {
  repository = mkdtempSync(join(tmpdir(), 'corral-git-'))
  execFileSync('git', ['init', '-q', repository])
})
afterEach(() => rmSync(repository, { recursive: true, force: true }))

const nothingIsSent = (): never => {
  throw new Error('something was sent')
}
const git = new SandboxGit({ write: nothingIsSent } as unknown as SandboxFiles, nothingIsSent)

it.each<{ what: string; commits: boolean; ref?: string; says: string }>([
  { what: 'a branch that is not there', commits: true, ref: 'nope', says: 'branch, tag or commit "nope"' },
  { what: 'a repository without a commit', commits: false, says: 'commit at its HEAD' },
])('pushing $what names the repository and what it lacks, and sends nothing', async ({ commits, ref, says }) => {
  const author = ['-c', 'user.name=t', '-c', 'user.email=t@example.com']
  if (commits) execFileSync('git', ['-C', repository, ...author, 'commit', '-q', '--allow-empty', '-m', 'one'])
  const pushing = git.push({ repository, directory: '/work', ...(ref === undefined ? {} : { ref }) })
  await expect(pushing).rejects.toMatchObject({
    code: 'NotFound',
    message: `repository "${repository}" has no ${says}`,
  })
})

import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')

/** The TypeScript of a page, block by block. */
function examplesOf(page: string): string[] {
  return [...readFileSync(join(root, page), 'utf8').matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text)
}

const pages = ['README.md', ...readdirSync(join(root, 'packages')).map((name) => `packages/${name}/README.md`)]

it('every example in a README compiles against the packages as they are built', () => {
  // Below the workspace, so that packages are found by name as a user's code finds them.
  const cache = join(root, 'node_modules', '.cache')
  mkdirSync(cache, { recursive: true })
  const directory = mkdtempSync(join(cache, 'readme-'))
  try {
    const files = pages.flatMap((page) =>
      examplesOf(page).map((text, index) => {
        const name = `${page.replaceAll('/', '-').replace('.md', '')}-${index + 1}.ts`
        writeFileSync(join(directory, name), `${text}\nexport {}\n`)
        return name
      }),
    )
    expect(files.length).toBeGreaterThan(10)
    const compilerOptions = { noEmit: true, composite: false, isolatedDeclarations: false, customConditions: [] }
    writeFileSync(
      join(directory, 'tsconfig.json'),
      JSON.stringify({ extends: join(root, 'tsconfig.base.json'), compilerOptions, files }),
    )
    const compiler = join(root, 'node_modules', '.bin', 'tsc')
    const { stdout, status } = spawnSync(compiler, ['-p', directory], { encoding: 'utf8' })
    expect(stdout).toBe('')
    expect(status).toBe(0)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})

// Releases what the changesets describe: versions and changelogs, a build, every public package packed and checked in a project
// that has nothing but its declared dependencies, then published and tagged. --dry-run does all of it in a copy of the working tree
// and publishes nothing.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { checkPackedPackages, lintPackedPackages, packPublicPackages } from './packed-packages.js'

const usage = `Usage: npm run release -- [--dry-run]

  --dry-run   shows the versions and tarballs a release would make; changes nothing and publishes nothing
`
const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const flags = process.argv.slice(2)
if (flags.includes('--help') || flags.some((flag) => flag !== '--dry-run')) {
  process.stdout.write(usage)
  process.exit(flags.includes('--help') ? 0 : 2)
}
const isDryRun = flags.includes('--dry-run')
const pending = readdirSync(join(root, '.changeset')).filter((name) => name.endsWith('.md') && name !== 'README.md')
process.stdout.write(`${pending.length} changesets: ${pending.join(', ') || 'none, the versions stay as they are'}\n`)
if (!isDryRun && run('git', ['status', '--porcelain'], root).trim() !== '')
  fail('the working tree has changes: commit them first')

const tree = isDryRun ? copyOfTree() : root
const tarballs = mkdtempSync(join(tmpdir(), 'corral-release-'))
try {
  if (pending.length > 0) run('npx', ['--no-install', 'changeset', 'version'], tree)
  run('npm', ['run', '--silent', 'build'], tree)
  const packed = packPublicPackages(tree, tarballs)
  checkPackedPackages(tree, packed)
  const problems = await lintPackedPackages(packed)
  if (problems.length > 0) fail(`the packages are not fit to be published:\n${problems.join('\n')}`)
  for (const { name, version, sizeBytes, files } of packed)
    process.stdout.write(`${name} ${version}: ${files} files, ${Math.ceil(sizeBytes / 1024)} KiB\n`)
  if (isDryRun) process.stdout.write('dry run: nothing was published\n')
  else {
    const version = packed[0]?.version ?? ''
    run('npm', ['install', '--package-lock-only'], tree)
    run('git', ['commit', '--all', '--message', `release: version ${version}`], tree)
    for (const { tarball } of packed) run('npm', ['publish', '--access', 'public', tarball], tree)
    run('git', ['tag', `v${version}`], tree)
    process.stdout.write(`published ${version}; now: git push --follow-tags\n`)
  }
} finally {
  rmSync(tarballs, { recursive: true, force: true })
  if (isDryRun) rmSync(tree, { recursive: true, force: true })
}

/** The files git knows, as they are now, beside the installed dependencies. */
function copyOfTree(): string {
  const copy = mkdtempSync(join(tmpdir(), 'corral-release-tree-'))
  const files = run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], root).split('\0')
  for (const file of files.filter(Boolean)) cpSync(join(root, file), join(copy, file), { verbatimSymlinks: true })
  const installed = join(root, 'node_modules')
  for (const name of readdirSync(installed)) {
    if (name === '@corral') continue
    cpSync(join(installed, name), join(copy, 'node_modules', name), { recursive: true, verbatimSymlinks: true })
  }
  mkdirSync(join(copy, 'node_modules/@corral'), { recursive: true })
  for (const folder of readdirSync(join(copy, 'packages'))) {
    const { name } = JSON.parse(readFileSync(join(copy, 'packages', folder, 'package.json'), 'utf8')) as {
      name: string
    }
    symlinkSync(join(copy, 'packages', folder), join(copy, 'node_modules', name))
  }
  return copy
}

function run(program: string, args: string[], cwd: string): string {
  const result = spawnSync(program, args, { cwd, encoding: 'utf8', maxBuffer: 256 * 1024 * 1024 })
  if (result.status !== 0) fail(`${program} ${args.join(' ')} failed:\n${result.stdout}${result.stderr}`)
  return result.stdout
}

function fail(text: string): never {
  process.stderr.write(`release: ${text}\n`)
  process.exit(1)
}

import type { Language, Read, Rule } from './language.js'

const path = 'node_modules/.bin'

/**
 * Lock files of Yarn 1 name files by the addresses they came from, and Yarn asks for those, whatever registry it is set up for.
 * While it installs they name the package mirror, where there is one; what the files must hash to stays as it is.
 */
const yarnLockAtMirror = `if [ -n "\${YARN_REGISTRY:-}" ]; then sed -Ei "s#^(  resolved \\")https?://[^/]+/(.*/-/|download/@)#\\1$YARN_REGISTRY\\2#" yarn.lock; fi`

/**
 * npm is what every Node has. Other package managers are put where the home directory has its programs: scripts of the project
 * call them by name, and the check has no network to fetch them with.
 */
const managed = (program: string, version: string): string =>
  `npm install --global --prefix ~/.local ${program}@${version}`

export const node: Language = {
  check: { name: 'npm-test', run: 'npm test' },
  hasTests: hasTestScript,
  rules: [
    { files: ['package-lock.json', 'npm-shrinkwrap.json'], isFor: mayBe('npm'), setup: ['npm ci'], path },
    {
      files: ['pnpm-lock.yaml'],
      isFor: mayBe('pnpm'),
      setup: (read) => [managed('pnpm', pnpmVersion(read)), 'pnpm install --frozen-lockfile'],
      path,
      check: { name: 'pnpm-test', run: 'pnpm test' },
    },
    // Yarn since 2 writes a format that yarn 1, which npm calls `yarn`, takes for an outdated one.
    {
      files: ['yarn.lock'],
      isFor: mayBe('yarn'),
      isOf: (content) => /^__metadata:/m.test(content),
      setup: (read) => {
        const own = ownVersion(read, 'yarn')
        // Each release of Yarn may write another lock file: one that is not the project's own must be let do so.
        return [managed('@yarnpkg/cli-dist', own ?? '4'), `yarn install ${own ? '--immutable' : '--no-immutable'}`]
      },
      path,
      check: { name: 'yarn-test', run: 'yarn test' },
    },
    {
      files: ['yarn.lock'],
      isFor: mayBe('yarn'),
      setup: (read) => [
        managed('yarn', ownVersion(read, 'yarn') ?? '1'),
        yarnLockAtMirror,
        'yarn install --frozen-lockfile',
        'git checkout --quiet -- yarn.lock',
      ],
      path,
      check: { name: 'yarn-test', run: 'yarn test' },
    },
    {
      files: ['bun.lock', 'bun.lockb'],
      isFor: mayBe('bun'),
      setup: (read) => [managed('bun', ownVersion(read, 'bun') ?? '1'), 'bun install --frozen-lockfile'],
      path,
      check: { name: 'bun-test', run: 'bun run test' },
    },
    // Without a lock file package.json may still say whose project it is: npm does not know `workspace:` for instance.
    ...withoutLockFile('pnpm', { isOf: isPnpm, install: 'pnpm install --no-lockfile', otherwise: '10' }),
    ...withoutLockFile('yarn', {
      isOf: (read) => managerOf(read) === 'yarn' && ownVersion(read, 'yarn')?.startsWith('1.') === true,
      install: 'yarn install --no-lockfile',
      otherwise: '1',
    }),
    ...withoutLockFile('yarn', {
      isOf: (read) => managerOf(read) === 'yarn',
      program: '@yarnpkg/cli-dist',
      install: 'yarn install --no-immutable',
      otherwise: '4',
    }),
    ...withoutLockFile('bun', {
      isOf: (read) => managerOf(read) === 'bun',
      install: 'bun install --no-save',
      otherwise: '1',
    }),
    { files: ['package.json'], setup: ['npm install --no-package-lock'], path },
  ],
}

function withoutLockFile(
  manager: string,
  how: { isOf: (read: Read) => boolean; program?: string; install: string; otherwise: string },
): Rule[] {
  const { isOf, program = manager, install, otherwise } = how
  return [
    {
      files: ['package.json'],
      isFor: isOf,
      setup: (read) => [managed(program, ownVersion(read, manager) ?? otherwise), install],
      path,
      check: { name: `${manager}-test`, run: `${manager} ${manager === 'bun' ? 'run ' : ''}test` },
    },
  ]
}

function isPnpm(read: Read): boolean {
  const manager = managerOf(read)
  return manager === 'pnpm' || (manager === '' && read('pnpm-workspace.yaml') !== undefined)
}

/** The package manager that package.json names; empty for none. */
function managerOf(read: Read): string {
  const { packageManager, devEngines } = manifestOf(read)
  const [, named] = /^(\w+)@/.exec(typeof packageManager === 'string' ? packageManager : '') ?? []
  const wanted = devEngines?.packageManager?.name
  return named ?? (typeof wanted === 'string' ? wanted : '')
}

const lockFiles: Readonly<Record<string, readonly string[]>> = {
  npm: ['package-lock.json', 'npm-shrinkwrap.json'],
  pnpm: ['pnpm-lock.yaml'],
  yarn: ['yarn.lock'],
  bun: ['bun.lock', 'bun.lockb'],
}

/** Of lock files of several package managers those of the one that package.json names count: others were left behind. */
function mayBe(manager: string): (read: Read) => boolean {
  return (read) => {
    // Kotlin's Gradle plugin keeps a yarn.lock of packages that no package.json names.
    if (read('package.json') === undefined) return false
    const named = managerOf(read)
    return named === manager || !lockFiles[named]?.some((file) => read(file) !== undefined)
  }
}

/** The version that package.json names for this package manager. */
function ownVersion(read: Read, manager: string): string | undefined {
  const named = new RegExp(`"packageManager"\\s*:\\s*"${manager}@(\\d+\\.\\d+\\.\\d+[\\w.-]*)`)
  return named.exec(read('package.json') ?? '')?.[1]
}

/** One that reads this lock file: a later pnpm fetches the project's own from elsewhere, or wants a newer Node. */
function pnpmVersion(read: Read): string {
  const [, format = '9'] = /^lockfileVersion:\s*'?(\d+)/m.exec(read('pnpm-lock.yaml') ?? '') ?? []
  return ownVersion(read, 'pnpm') ?? { 5: '7', 6: '8' }[format] ?? '10'
}

/** `npm init` writes a test script that only fails. */
function hasTestScript(read: Read): boolean {
  const { scripts } = manifestOf(read)
  return typeof scripts?.test === 'string' && !scripts.test.includes('no test specified')
}

interface Manifest {
  packageManager?: unknown
  devEngines?: { packageManager?: { name?: unknown } | null } | null
  scripts?: { test?: unknown } | null
}

function manifestOf(read: Read): Manifest {
  try {
    return (JSON.parse(read('package.json') || '{}') as Manifest | null) ?? {}
  } catch {
    // A package.json that is no JSON is for npm to complain about.
    return {}
  }
}

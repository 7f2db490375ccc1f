/** How a repository is set up, as its files tell. */
export interface DetectedSetup {
  /** The file that says so. */
  because: string
  setup: string[]
  path?: string
  /** A toolchain that machines do not have on PATH, where no version file asks for it. */
  tools?: Readonly<Record<string, string>>
  /** How its tests are run without network, where the files leave no doubt that it has some. */
  check?: { name: string; run: string }
}

/** The text of a file at the root; undefined where it is not there. */
type Read = (file: string) => string | undefined

interface Rule {
  /** The first of them that is there decides. */
  files: readonly string[]
  /** Where one name stands for several formats: whether the file is of this one. */
  isOf?: (content: string) => boolean
  setup: readonly string[] | ((read: Read) => string[])
  path?: string
}

interface Language {
  rules: readonly Rule[]
  tools?: { files: readonly string[]; otherwise: Readonly<Record<string, string>> }
  check: { name: string; run: string }
  /** Whether the repository has such tests. */
  hasTests(read: Read): boolean
}

const venv = 'python3 -m venv .venv'

/**
 * uv.lock names files by their own addresses, which the package mirror cannot stand in for. Exported, the same versions and hashes
 * are found through the index; what is left for `sync` is the project itself.
 */
const uvSetup = [
  '.venv/bin/uv export --frozen --no-emit-workspace --quiet --output-file .venv/requirements.txt',
  '.venv/bin/uv pip install --quiet --requirement .venv/requirements.txt',
  '.venv/bin/uv sync --frozen',
]

const always = (): boolean => true

/**
 * Compiles and fetches what the test phase needs, and runs no test. It names a method that no test has, not a class: where no
 * class matches, Surefire stops before it fetches the runner (surefire-junit-platform and its kin), which the check would miss.
 */
const mavenSetup =
  "mvn -B -ntp test '-Dtest=*#noSuchTest' -DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false"

/** Within a language the first rule that matches is taken. */
const languages: readonly Language[] = [
  {
    check: { name: 'npm-test', run: 'npm test' },
    hasTests: hasTestScript,
    rules: [
      { files: ['package-lock.json', 'npm-shrinkwrap.json'], setup: ['npm ci'], path: 'node_modules/.bin' },
      { files: ['pnpm-lock.yaml'], setup: ['npx --yes pnpm install --frozen-lockfile'], path: 'node_modules/.bin' },
      // Yarn since 2 writes a format that yarn 1, which npm calls `yarn`, takes for an outdated one.
      {
        files: ['yarn.lock'],
        isOf: (content) => /^__metadata:/m.test(content),
        setup: (read) => [`npx --yes @yarnpkg/cli-dist@${yarnOptions(read)}`],
        path: 'node_modules/.bin',
      },
      { files: ['yarn.lock'], setup: ['npx --yes yarn install --frozen-lockfile'], path: 'node_modules/.bin' },
      {
        files: ['bun.lock', 'bun.lockb'],
        setup: ['npx --yes bun install --frozen-lockfile'],
        path: 'node_modules/.bin',
      },
      { files: ['package.json'], setup: ['npm install --no-package-lock'], path: 'node_modules/.bin' },
    ],
  },
  {
    check: { name: 'pytest', run: 'python -m pytest -q' },
    hasTests: usesPytest,
    rules: [
      {
        files: ['uv.lock'],
        setup: [venv, '.venv/bin/pip install uv', ...uvSetup],
        path: '.venv/bin',
      },
      {
        files: ['poetry.lock'],
        setup: [venv, '.venv/bin/pip install poetry', '.venv/bin/poetry install --no-interaction'],
        path: '.venv/bin',
      },
      { files: ['requirements.txt'], setup: [venv, '.venv/bin/pip install -r requirements.txt'], path: '.venv/bin' },
      { files: ['pyproject.toml', 'setup.py'], setup: [venv, '.venv/bin/pip install -e .'], path: '.venv/bin' },
    ],
  },
  {
    check: { name: 'go-test', run: 'go test ./...' },
    hasTests: always,
    rules: [{ files: ['go.mod'], setup: ['go mod download'] }],
  },
  {
    check: { name: 'cargo-test', run: 'cargo test --offline' },
    // rustup keeps toolchains in a home directory: without a word for one no sandbox has any.
    tools: { files: ['rust-toolchain.toml', 'rust-toolchain'], otherwise: { rust: '1' } },
    hasTests: always,
    rules: [
      { files: ['Cargo.lock'], setup: ['cargo fetch --locked'] },
      { files: ['Cargo.toml'], setup: ['cargo fetch'] },
    ],
  },
  {
    check: { name: 'mvn-test', run: 'mvn -B -ntp -o test' },
    hasTests: always,
    rules: [{ files: ['pom.xml'], setup: [mavenSetup] }],
  },
  {
    check: { name: 'ctest', run: 'cmake --build build -j 2 && ctest --test-dir build --output-on-failure' },
    hasTests: (read) => /\b(enable_testing|add_test)\b|include\(CTest\)/i.test(read('CMakeLists.txt') ?? ''),
    rules: [{ files: ['CMakeLists.txt'], setup: ['cmake -S . -B build'] }],
  },
]

/** What the files at the root of a repository say about its set-up, a row per language. Pure. */
export function detectSetup(files: ReadonlySet<string>, read: Read = () => undefined): DetectedSetup[] {
  return languages.flatMap(({ rules, check, hasTests, tools }) => {
    const isAsked = tools?.files.some((file) => files.has(file))
    for (const { files: wanted, isOf = always, setup, path } of rules) {
      const because = wanted.find((file) => files.has(file) && isOf(read(file) ?? ''))
      if (because)
        return [
          {
            because,
            setup: typeof setup === 'function' ? setup(read) : [...setup],
            ...(path ? { path } : {}),
            ...(tools && !isAsked ? { tools: tools.otherwise } : {}),
            ...(hasTests(read) ? { check } : {}),
          },
        ]
    }
    return []
  })
}

/** Each release of Yarn may write another lock file: one that is not the project's own must be let do so. */
function yarnOptions(read: Read): string {
  const [, own] = /"packageManager"\s*:\s*"yarn@(\d+\.\d+\.\d+)/.exec(read('package.json') ?? '') ?? []
  return own ? `${own} install --immutable` : '4 install --no-immutable'
}

/** `npm init` writes a test script that only fails. */
function hasTestScript(read: Read): boolean {
  try {
    const { scripts } = JSON.parse(read('package.json') ?? '{}') as { scripts?: { test?: unknown } }
    return typeof scripts?.test === 'string' && !scripts.test.includes('no test specified')
  } catch {
    // A package.json that is no JSON is for npm to complain about.
    return false
  }
}

function usesPytest(read: Read): boolean {
  return ['pyproject.toml', 'requirements.txt', 'setup.cfg', 'tox.ini'].some((file) => read(file)?.includes('pytest'))
}

import { always, type Check, type Language, type Read } from './languages/language.js'
import { cmake, make, otherwise } from './languages/native.js'
import { node } from './languages/node.js'
import { python } from './languages/python.js'

/** How a repository is set up, as its files tell. */
export interface DetectedSetup {
  /** The file that says so. */
  because: string
  setup: string[]
  /** Compiles what the check would, for every task to find it done. */
  ahead?: string
  path?: string
  /** A toolchain that machines do not have on PATH, where no version file asks for it. */
  tools?: Readonly<Record<string, string>>
  /** How its tests are run without network, where the files leave no doubt that it has some. */
  check?: Check
}

/**
 * Compiles and fetches what the test phase needs, and runs no test. It names a method that no test has, not a class: where no
 * class matches, Surefire stops before it fetches the runner (surefire-junit-platform and its kin), which the check would miss.
 */
const mavenSetup =
  "mvn -B -ntp test '-Dtest=*#noSuchTest' -DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false"

/** A workspace has no package at its own root: its modules are named one by one. */
const goWorkspace = "$(go list -m -f '{{.Dir}}/...')"

/** Within a language the first rule that matches is taken. */
const languages: readonly Language[] = [
  node,
  python,
  {
    check: { name: 'go-test', run: 'go test ./...' },
    // Each test binary is handed to `true` instead of being run.
    ahead: 'go test -exec true ./...',
    hasTests: always,
    rules: [
      {
        files: ['go.work'],
        setup: ['go mod download'],
        check: { name: 'go-test', run: `go test ${goWorkspace}` },
        ahead: `go test -exec true ${goWorkspace}`,
      },
      { files: ['go.mod'], setup: ['go mod download'] },
    ],
  },
  {
    check: { name: 'cargo-test', run: 'cargo test --offline' },
    ahead: 'cargo test --no-run --offline',
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
  cmake,
]

/** What the files at the root of a repository say about its set-up, a row per language. Pure. */
export function detectSetup(files: ReadonlySet<string>, read: Read = () => undefined): DetectedSetup[] {
  const known = languages.flatMap((language) => detectLanguage(language, files, read))
  return known.length > 0 ? known : otherwise.flatMap((language) => detectLanguage(language, files, read)).slice(0, 1)
}

/** For a repository with nothing else to tell by. Pure. */
export function detectMake(files: ReadonlySet<string>, read: Read): DetectedSetup[] {
  return detectLanguage(make, files, read)
}

function detectLanguage(
  { rules, check, ahead, hasTests, tools }: Language,
  files: ReadonlySet<string>,
  read: Read,
): DetectedSetup[] {
  const isAsked = tools && (tools.files.some((file) => files.has(file)) || isInToolVersions(tools.otherwise, read))
  for (const rule of rules) {
    const { files: wanted, isOf = always, isFor = always, setup, path } = rule
    const { check: ownCheck = check, ahead: ownAhead = ahead } = rule
    const because = isFor(read) && wanted.find((file) => files.has(file) && isOf(read(file) ?? ''))
    if (because)
      return [
        {
          because,
          setup: typeof setup === 'function' ? setup(read) : [...setup],
          ...(ownAhead ? { ahead: ownAhead } : {}),
          ...(path ? { path } : {}),
          ...(tools && !isAsked ? { tools: tools.otherwise } : {}),
          ...(hasTests(read) ? { check: ownCheck } : {}),
        },
      ]
  }
  return []
}

/** Files that name versions of several tools. */
export const toolVersionFiles: readonly string[] = ['.tool-versions', 'mise.toml', '.mise.toml']

/** What the environment file names wins over those files: it must not name another version. */
function isInToolVersions(tools: Readonly<Record<string, string>>, read: Read): boolean {
  const text = toolVersionFiles.map((file) => read(file) ?? '').join('\n')
  return Object.keys(tools).some((name) => new RegExp(`^[ \\t]*${name}[ \\t=]`, 'm').test(text))
}

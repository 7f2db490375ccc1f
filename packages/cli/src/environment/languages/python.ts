import type { Language, Read } from './language.js'

/** What makes a virtual environment, with the .gitignore that every maker of one but an older Python puts into it. */
const venv = ['python3 -m venv .venv', "echo '*' > .venv/.gitignore"]
const pip = '.venv/bin/pip install'
const path = '.venv/bin'
/**
 * What is exported is complete. Left to look for more, pip asks for a hash of `coverage[toml]` where one of `coverage` is given.
 */
const exported = `${pip} --no-deps -r .venv/requirements.txt`
const testRequirements = [
  'requirements-dev.txt',
  'requirements-test.txt',
  'requirements-tests.txt',
  'dev-requirements.txt',
  'test-requirements.txt',
]

export const python: Language = {
  check: { name: 'pytest', run: 'python -m pytest -q' },
  hasTests: usesPytest,
  rules: [
    { files: ['uv.lock'], setup: uvSetup, path },
    { files: ['poetry.lock'], setup: poetrySetup, path },
    { files: ['Pipfile.lock'], setup: pipenvSetup, path },
    { files: ['requirements.txt', 'pyproject.toml', 'setup.py'], setup: pipSetup, path },
  ],
}

/**
 * uv.lock names files by their own addresses, which the package mirror cannot stand in for. Exported, the same versions and hashes
 * are found through the index; what is left for `sync` is the project itself.
 */
function uvSetup(read: Read): string[] {
  const text = read('pyproject.toml') ?? ''
  const { group, extra } = pytestIn(text)
  // Members of a workspace count only where its root depends on them, and there may be no root.
  const all = /^\[tool\.uv\.workspace\]/m.test(text) ? ' --all-packages' : ''
  const wanted = group && group !== 'dev' ? ` --group ${group}` : extra && !group ? ` --extra ${extra}` : ''
  const more = `${all}${wanted}`
  return [
    ...venv,
    `${pip} uv`,
    `.venv/bin/uv export --frozen --no-emit-workspace --quiet${more} --output-file .venv/requirements.txt`,
    '.venv/bin/uv pip install --quiet --requirement .venv/requirements.txt',
    `.venv/bin/uv sync --frozen${more}`,
  ]
}

/**
 * Poetry asks PyPI itself, whatever index pip is set up for. Exported, its lock file is installed through the index, with the same
 * hashes. It lies apart: what it needs is not the project's.
 */
function poetrySetup(read: Read): string[] {
  const text = read('pyproject.toml') ?? ''
  const groups = poetryGroups(text)
  const { extra } = pytestIn(text)
  const more = `${groups.length > 0 ? ` --with ${groups.join(',')}` : ''}${extra ? ` --extras ${extra}` : ''}`
  return [
    'python3 -m venv ~/.local/poetry',
    '~/.local/poetry/bin/pip install poetry poetry-plugin-export',
    ...venv,
    `~/.local/poetry/bin/poetry export${more} --output .venv/requirements.txt`,
    exported,
    ...(/^package-mode\s*=\s*false/m.test(text) ? [] : [`${pip} --no-deps -e .`]),
  ]
}

/** What Pipenv exports names the index of the Pipfile, which pip would ask then. */
function pipenvSetup(): string[] {
  return [
    'python3 -m venv ~/.local/pipenv',
    '~/.local/pipenv/bin/pip install pipenv',
    ...venv,
    "~/.local/pipenv/bin/pipenv requirements --dev --hash | sed -E '/^(-i|--index-url|--extra-index-url) /d' > .venv/requirements.txt",
    exported,
  ]
}

/** The groups that `poetry install` installs unasked. */
function poetryGroups(text: string): string[] {
  const named = [...text.matchAll(/^\[tool\.poetry\.group\.([\w-]+)\.dependencies\]/gm)].map(([, name = '']) => name)
  const old = /^\[tool\.poetry\.dev-dependencies\]/m.test(text) ? ['dev'] : []
  const isOptional = (name: string): boolean =>
    new RegExp(`^\\[tool\\.poetry\\.group\\.${name}\\]\\s*\\noptional\\s*=\\s*true`, 'm').test(text)
  return [...new Set([...old, ...[...named, ...groupsIn(text)].filter((name) => !isOptional(name))])]
}

/** What the project names, itself where it can be installed, and what its tests are run with. */
function pipSetup(read: Read): string[] {
  const text = read('pyproject.toml') ?? ''
  const { group, extra } = pytestIn(text)
  const files = ['requirements.txt', ...testRequirements].filter((file) => read(file) !== undefined)
  const isProject = isPackage(read)
  const isOnlyNamed = isProject && isSaidNoPackage(text)
  const wanted = [
    ...(isProject && !isOnlyNamed ? [extra ? `-e '.[${extra}]'` : '-e .'] : []),
    ...(group && !isOnlyNamed ? [`--group ${group}`] : []),
    ...(usesPytest(read) && !group && !extra && !files.some((file) => read(file)?.includes('pytest'))
      ? ['pytest']
      : []),
  ]
  // Groups of dependencies are newer than the pip that a Python brings.
  const newer = group && !isOnlyNamed ? [`${pip} --upgrade pip`] : []
  const named = files.map((file) => `-r ${file}`)
  // Where one file has hashes, pip takes nothing without them in the same run.
  const isHashed = files.some((file) => /\s--hash[= ]/.test(read(file) ?? ''))
  const runs = isHashed ? [...named.map((each) => [each]), wanted] : [[...named, ...wanted]]
  const installs = runs.filter((run) => run.length > 0).map((run) => `${pip} ${run.join(' ')}`)
  const names = namedAlone({ group, extra, more: wanted.filter((each) => each === 'pytest') })
  if (isOnlyNamed) return [...venv, ...newer, ...installs, ...names]
  // Without a build system setuptools guesses what the package is, and gives up where several directories could be one.
  if (isProject && !isBuilt(read)) installs.push(`${installs.pop()} || (${names.join(' && ')})`)
  return [...venv, ...newer, ...installs]
}

/** What a project depends on, without the project, which pip cannot install so. */
function namedAlone({
  group,
  extra,
  more,
}: {
  group?: string | undefined
  extra?: string | undefined
  more: readonly string[]
}): string[] {
  const words = [...(extra ? ['--extra', extra] : []), ...(group ? ['--group', group] : []), ...more]
  return [`${pip} uv`, ['.venv/bin/uv pip install --python .venv --requirement pyproject.toml', ...words].join(' ')]
}

const isBuilt = (read: Read): boolean =>
  /^\[build-system\]/m.test(read('pyproject.toml') ?? '') || read('setup.py') !== undefined

const isPackage = (read: Read): boolean => isBuilt(read) || /^\[project\]/m.test(read('pyproject.toml') ?? '')

/** Whether the settings of PDM or uv say so. */
const isSaidNoPackage = (text: string): boolean =>
  /^distribution\s*=\s*false/m.test(text) || /^package\s*=\s*false/m.test(text)

/** The group of dependencies, or the extra of the package, that names pytest. */
function pytestIn(text: string): { group?: string; extra?: string } {
  const group = listNamingPytest(text, 'dependency-groups')
  const extra = listNamingPytest(text, 'project.optional-dependencies')
  return { ...(group ? { group } : {}), ...(extra ? { extra } : {}) }
}

/** The names of `[dependency-groups]`, which Poetry reads since 2.2. */
function groupsIn(text: string): string[] {
  return [...tableIn(text, 'dependency-groups').matchAll(/^["']?([\w.-]+)["']?\s*=\s*\[/gm)].map(
    ([, name = '']) => name,
  )
}

function tableIn(text: string, table: string): string {
  const [, content = ''] = text.split(new RegExp(`^\\[${table.replaceAll('.', '\\.')}\\]\\s*(?:#.*)?$`, 'm'))
  const [own = ''] = content.split(/^\[/m)
  return own
}

/** The first list of this table of a TOML file with pytest in it. */
function listNamingPytest(text: string, table: string): string | undefined {
  const own = tableIn(text, table)
  const lists = own.matchAll(/^["']?([\w.-]+)["']?\s*=\s*\[([\s\S]*?)\]\s*(?:#.*)?$/gm)
  return [...lists].find(([, , items = '']) => /["']pytest\b(?!-)/.test(items))?.[1]
}

function usesPytest(read: Read): boolean {
  const files = ['pyproject.toml', 'requirements.txt', 'setup.cfg', 'tox.ini', ...testRequirements]
  return files.some((file) => read(file)?.includes('pytest')) || read('pytest.ini') !== undefined
}

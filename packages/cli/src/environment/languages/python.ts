import type { Language, Read } from './language.js'

const venv = 'python3 -m venv .venv'
const pip = '.venv/bin/pip install'
const path = '.venv/bin'
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
    { files: ['requirements.txt', 'pyproject.toml', 'setup.py'], setup: pipSetup, path },
  ],
}

/**
 * uv.lock names files by their own addresses, which the package mirror cannot stand in for. Exported, the same versions and hashes
 * are found through the index; what is left for `sync` is the project itself.
 */
function uvSetup(read: Read): string[] {
  const { group, extra } = pytestIn(read('pyproject.toml') ?? '')
  const more = group && group !== 'dev' ? ` --group ${group}` : extra && !group ? ` --extra ${extra}` : ''
  return [
    venv,
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
    venv,
    `~/.local/poetry/bin/poetry export${more} --output .venv/requirements.txt`,
    `${pip} -r .venv/requirements.txt`,
    ...(/^package-mode\s*=\s*false/m.test(text) ? [] : [`${pip} --no-deps -e .`]),
  ]
}

/** The groups that `poetry install` installs unasked. */
function poetryGroups(text: string): string[] {
  const named = [...text.matchAll(/^\[tool\.poetry\.group\.([\w-]+)\.dependencies\]/gm)].map(([, name = '']) => name)
  const old = /^\[tool\.poetry\.dev-dependencies\]/m.test(text) ? ['dev'] : []
  const isOptional = (name: string): boolean =>
    new RegExp(`^\\[tool\\.poetry\\.group\\.${name}\\]\\s*\\noptional\\s*=\\s*true`, 'm').test(text)
  return [...new Set([...old, ...named.filter((name) => !isOptional(name))])]
}

/** What the project names, itself where it can be installed, and what its tests are run with. */
function pipSetup(read: Read): string[] {
  const text = read('pyproject.toml') ?? ''
  const { group, extra } = pytestIn(text)
  const files = ['requirements.txt', ...testRequirements].filter((file) => read(file) !== undefined)
  const isPackage = /^\[(project|build-system)\]/m.test(text) || read('setup.py') !== undefined
  const wanted = [
    ...files.map((file) => `-r ${file}`),
    ...(isPackage ? [extra ? `-e '.[${extra}]'` : '-e .'] : []),
    ...(group ? [`--group ${group}`] : []),
    ...(usesPytest(read) && !group && !extra && !files.some((file) => read(file)?.includes('pytest'))
      ? ['pytest']
      : []),
  ]
  // Groups of dependencies are newer than the pip that a Python brings.
  const newer = group ? [`${pip} --upgrade pip`] : []
  return [venv, ...newer, ...(wanted.length > 0 ? [`${pip} ${wanted.join(' ')}`] : [])]
}

/** The group of dependencies, or the extra of the package, that names pytest. */
function pytestIn(text: string): { group?: string; extra?: string } {
  const group = listNamingPytest(text, 'dependency-groups')
  const extra = listNamingPytest(text, 'project.optional-dependencies')
  return { ...(group ? { group } : {}), ...(extra ? { extra } : {}) }
}

/** The first list of this table of a TOML file with pytest in it. */
function listNamingPytest(text: string, table: string): string | undefined {
  const [, content = ''] = text.split(new RegExp(`^\\[${table.replaceAll('.', '\\.')}\\]\\s*(?:#.*)?$`, 'm'))
  const [own = ''] = content.split(/^\[/m)
  const lists = own.matchAll(/^["']?([\w.-]+)["']?\s*=\s*\[([\s\S]*?)\]\s*(?:#.*)?$/gm)
  return [...lists].find(([, , items = '']) => /["']pytest\b(?!-)/.test(items))?.[1]
}

function usesPytest(read: Read): boolean {
  const files = ['pyproject.toml', 'requirements.txt', 'setup.cfg', 'tox.ini', ...testRequirements]
  return files.some((file) => read(file)?.includes('pytest')) || read('pytest.ini') !== undefined
}

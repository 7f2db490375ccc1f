/** How a repository is set up, as its files tell. */
export interface DetectedSetup {
  /** The file that says so. */
  because: string
  setup: string[]
  path?: string
}

interface Rule {
  /** The first of them that is there decides. */
  files: readonly string[]
  setup: readonly string[]
  path?: string
}

const venv = 'python3 -m venv .venv'

/** One group per language; within a group the first rule that matches is taken. */
const groups: readonly (readonly Rule[])[] = [
  [
    { files: ['package-lock.json', 'npm-shrinkwrap.json'], setup: ['npm ci'], path: 'node_modules/.bin' },
    { files: ['pnpm-lock.yaml'], setup: ['npx --yes pnpm install --frozen-lockfile'], path: 'node_modules/.bin' },
    { files: ['yarn.lock'], setup: ['npx --yes yarn install --frozen-lockfile'], path: 'node_modules/.bin' },
    { files: ['package.json'], setup: ['npm install --no-package-lock'], path: 'node_modules/.bin' },
  ],
  [
    { files: ['uv.lock'], setup: [venv, '.venv/bin/pip install uv', '.venv/bin/uv sync --frozen'], path: '.venv/bin' },
    {
      files: ['poetry.lock'],
      setup: [venv, '.venv/bin/pip install poetry', '.venv/bin/poetry install --no-interaction'],
      path: '.venv/bin',
    },
    { files: ['requirements.txt'], setup: [venv, '.venv/bin/pip install -r requirements.txt'], path: '.venv/bin' },
    { files: ['pyproject.toml', 'setup.py'], setup: [venv, '.venv/bin/pip install -e .'], path: '.venv/bin' },
  ],
  [{ files: ['go.mod'], setup: ['go mod download'] }],
  [
    { files: ['Cargo.lock'], setup: ['cargo fetch --locked'] },
    { files: ['Cargo.toml'], setup: ['cargo fetch'] },
  ],
  [{ files: ['CMakeLists.txt'], setup: ['cmake -S . -B build'] }],
]

/** What the files at the root of a repository say about its set-up, a row per language. Pure. */
export function detectSetup(files: ReadonlySet<string>): DetectedSetup[] {
  return groups.flatMap((rules) => {
    for (const { files: wanted, setup, path } of rules) {
      const because = wanted.find((file) => files.has(file))
      if (because) return [{ because, setup: [...setup], ...(path ? { path } : {}) }]
    }
    return []
  })
}

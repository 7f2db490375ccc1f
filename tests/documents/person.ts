import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** The account the commands are pasted in: one with a home directory that nothing was configured in. */
export interface Person {
  readonly name: string
  /** Set where the commands run as another account than the tests. */
  readonly account?: { readonly uid: number; readonly gid: number }
  readonly home: string
  readonly env: Readonly<Record<string, string>>
  /** Where this person's platform keeps its data. */
  readonly dataDir: string
}

/**
 * The account that runs the tests, with a home of its own. For root the data directory is named, because the usual one
 * belongs to the machine; others use the usual one below their home.
 */
export function currentPerson(home: string): Person {
  mkdirSync(join(home, 'bin'), { recursive: true })
  chmodSync(home, 0o711)
  const isRoot = process.getuid?.() === 0
  const dataDir = isRoot ? join(home, 'data') : join(home, '.corral')
  return { name: isRoot ? 'root' : 'plain user', home, dataDir, env: environmentOf(home, isRoot ? dataDir : undefined) }
}

export function environmentOf(home: string, dataDir: string | undefined): Record<string, string> {
  return {
    PATH: [join(home, 'bin'), ...pathOfMachine()].join(delimiter),
    HOME: home,
    LANG: 'C.UTF-8',
    NO_COLOR: '1',
    ...(dataDir === undefined ? {} : { CORRAL_DATA_DIR: dataDir }),
    // Downloads and builds go where this machine's administrator says, as for any account here.
    ...(Object.fromEntries(
      Object.entries(process.env).filter(([name]) =>
        /^(npm_config_registry|https?_proxy|no_proxy|GOPROXY|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR)|PIP_CERT)$/i.test(
          name,
        ),
      ),
    ) as Record<string, string>),
  }
}

/** The PATH without what npm puts in front of it for the scripts of this clone. */
function pathOfMachine(): string[] {
  return (process.env.PATH ?? '').split(delimiter).filter((entry) => !/node_modules|node-gyp-bin/.test(entry))
}

/** curl that says which status it got, so that a refusal is not taken for success. */
export const curlWithStatus = `#!/bin/sh
for directory in $(printf '%s' "$PATH" | tr ':' ' '); do
  if [ -x "$directory/curl" ] && [ "$directory/curl" != "$0" ]; then
    exec "$directory/curl" -w '%{stderr}[http %{http_code}]\\n' "$@"
  fi
done
echo 'curl is not installed' >&2
exit 127
`

/** What a person has who works on a program: a repository with an agent's stand-in and a formatter. */
export const sampleRepository = `
printf 'not-a-real-key\\n' > key.txt && printf 'key.txt\\n' >> .git/info/exclude
mkdir -p ~/src/app && cd ~/src/app && git init -q -b main
printf 'not-a-real-key\\n' > key.txt && printf 'key.txt\\n' > .gitignore
printf '# App\\n' > README.md
printf '{ "name": "app", "version": "1.0.0" }\\n' > package.json
printf 'echo "working on: $CORRAL_PROMPT"\\ndate >> FIXED.md\\n' > fix.sh
printf '#!/bin/sh\\nprintf "\\\\n" >> README.md\\n' > format.sh
chmod +x fix.sh format.sh
git add -A
git -c user.name=Test -c user.email=test@localhost commit -qm first
`

/** The ready record of a person's platform, while it runs. */
export function readyOf(
  person: Person,
  dataDir: string = person.dataDir,
): { url: string; token: string; pid: number } | undefined {
  const file = join(dataDir, 'ready.json')
  return existsSync(file)
    ? (JSON.parse(readFileSync(file, 'utf8')) as { url: string; token: string; pid: number })
    : undefined
}

export function installCurl(home: string): void {
  writeFileSync(join(home, 'bin', 'curl'), curlWithStatus, { mode: 0o755 })
}

import { environmentFilePath } from '@corral/protocol'

const name = '([A-Za-z][\\w.+-]{0,60})'

/** How shells, programs that start others, compilers and runtimes say that there is no such program. */
const notFound: readonly RegExp[] = [
  new RegExp(`: line \\d+: ${name}: command not found`),
  new RegExp(`sh: (?:\\d+: )?${name}: not found`),
  new RegExp(`env: [‘'"]?${name}[’'"]?: No such file or directory`),
  new RegExp(`make(?:\\[\\d+\\])?: ${name}: No such file or directory`),
  new RegExp(`xargs: ${name}: No such file or directory`),
  new RegExp(`: failed to run command [‘'"]${name}[’'"]: No such file or directory`),
  new RegExp(`exec: "${name}": executable file not found in \\$PATH`),
  new RegExp(`error: linker \`${name}\` not found`),
  new RegExp(`error: command '${name}' failed: No such file or directory`),
  new RegExp(`spawn ${name} ENOENT`),
]

/** How package managers of a system and `sudo` say that they may not. */
const notAllowed = /no new privileges|must be owned by uid 0|are you root\?|Could not open lock file \/var\/lib/i

const ofSystem = [
  'sudo',
  'su',
  'apt',
  'apt-get',
  'dpkg',
  'yum',
  'dnf',
  'apk',
  'pacman',
  'brew',
  'snap',
  'docker',
  'podman',
]
const fromNpm = ['pnpm', 'yarn', 'bun', 'corepack', 'tsc', 'turbo', 'nx', 'lerna']
const fromPip = [
  'poetry',
  'pipenv',
  'pdm',
  'hatch',
  'tox',
  'nox',
  'meson',
  'ninja',
  'pre-commit',
  'pytest',
  'just',
  'cmake',
  'conan',
]
const toolchains: Readonly<Record<string, string>> = {
  ...{ go: 'go', node: 'node', npm: 'node', npx: 'node', uv: 'uv', uvx: 'uv' },
  ...{ cargo: 'rust', rustc: 'rust', rustup: 'rust', java: 'java', javac: 'java', python: 'python', python3: 'python' },
}

/**
 * What to do about a program that set-up or a service looked for in vain, or one that would change the system, from the last lines
 * it said. Undefined where they tell of neither. Services start before set-up, which can install nothing for them. Pure.
 */
export function missingProgramHint(tail: string, who: 'set-up' | 'service' = 'set-up'): string | undefined {
  const found = notFound.flatMap((each) => each.exec(tail)?.[1] ?? [])[0]
  if (found === undefined && !notAllowed.test(tail)) return undefined
  if (found === undefined || ofSystem.includes(found))
    return `${who === 'service' ? 'A service' : 'Set-up'} is an ordinary user in a sandbox that cannot change its system${found ? ` (${found})` : ''}: have what it wants installed where the sandbox gets its programs from, or name an \`image\` that has it in ${environmentFilePath}: \`corral image build NAME --debian PACKAGE\`.`
  const first = `The sandbox has no ${found}.`
  const tool = Object.hasOwn(toolchains, found) ? toolchains[found] : undefined
  if (tool)
    return `${first} Name ${tool} under tools of ${environmentFilePath}; \`corral env tools\` says what there is.`
  if (who === 'service')
    return `${first} Services start before set-up: have it installed where the sandbox gets its programs from, or name an \`image\` that has it in ${environmentFilePath}. What set-up installs can run under \`start\`.`
  if (fromNpm.includes(found))
    return `${first} Let set-up install it first: \`npm install --global --prefix ~/.local ${found}\`.`
  if (fromPip.includes(found)) return `${first} Let set-up install it first: \`pip install ${found}\`.`
  return `${first} Have it installed where the sandbox gets its programs from, or let set-up put it into ~/.local/bin.`
}

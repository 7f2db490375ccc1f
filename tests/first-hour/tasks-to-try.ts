/** One command of the first hour, with how it ends. */
export interface Trial {
  readonly what: string
  readonly typed: string
  readonly code: number
  /** What its output must show. */
  readonly says: RegExp
}

const repository = (name: string, branch: string): string =>
  `mkdir -p ~/src/${name}/lib && cd ~/src/${name} && git init -q -b ${branch} && echo one > README.md && echo two > lib/notes.md && ` +
  `git add -A && git -c user.name=Test -c user.email=test@localhost commit -qm first`

const change = `--command 'echo "$CORRAL_PROMPT" >> DONE.md'`
const branch = /● branch corral\/|● branch first-hour\//

/** Tasks of every kind a person tries first. The working directory is the clone. */
export const trials: readonly Trial[] = [
  ...['main', 'master', 'trunk', 'release/1.x'].flatMap((base): Trial[] => {
    const name = `based on ${base.replace('/', ' ')}`
    const path = name.replaceAll(' ', '-')
    return [
      { what: `a repository whose branch is ${base}`, typed: `(${repository(path, base)})`, code: 0, says: /^/ },
      {
        what: `a task ${name}`,
        typed: `./corral run "Say hello" --repo ~/src/${path} ${change}`,
        code: 0,
        says: branch,
      },
    ]
  }),
  {
    what: 'the branch is there, with the work',
    typed: `git -C ~/src/based-on-main for-each-ref --format='%(refname:short)' refs/heads && git -C ~/src/based-on-main show "$(git -C ~/src/based-on-main for-each-ref --format='%(refname:short)' refs/heads/corral | head -1):DONE.md"`,
    code: 0,
    says: /Say hello/,
  },
  {
    what: 'a local path that is an address',
    typed: `./corral run "Say hello" --repo "file://$HOME/src/based-on-trunk" --branch first-hour/address ${change}`,
    code: 0,
    says: branch,
  },
  {
    what: 'a subdirectory of a repository',
    typed: `(CORRAL="$PWD/corral"; cd ~/src/based-on-main/lib && "$CORRAL" run "Say hello" ${change})`,
    code: 0,
    says: branch,
  },
  {
    what: 'an agent that fails',
    typed: `./corral run "Fail" --repo ~/src/app --command 'echo trying; exit 3'`,
    code: 1,
    says: /AgentFailed|exit code 3/,
  },
  {
    what: 'an agent that changes nothing',
    typed: `./corral run "Do nothing" --repo ~/src/app --command true`,
    code: 0,
    says: /no changes were needed/,
  },
  {
    what: 'a task that takes too long',
    typed: `./corral run "Sleep" --repo ~/src/app --timeout 3s --command 'sleep 600'`,
    code: 4,
    says: /Timeout|timed out|out of time/i,
  },
  {
    what: 'a task that is cancelled',
    typed: `ID=$(./corral task create "Sleep" --repo ~/src/app --command 'sleep 600' --json | sed -n 's/.*"id": *"\\([^"]*\\)".*/\\1/p'); ./corral task cancel "$ID" && ./corral task watch "$ID"`,
    code: 5,
    says: /cancelled/i,
  },
  {
    what: 'a prompt from standard input',
    typed: `echo "Say hello from a pipe" | ./corral run - --repo ~/src/app ${change}`,
    code: 0,
    says: branch,
  },
  {
    what: 'files that go along',
    typed: `echo "a note" > ~/note.txt; ./corral run "Use the note" --repo ~/src/app --file ~/note.txt --command 'find . -name note.txt | grep -q . && date > SEEN.md'`,
    code: 0,
    says: branch,
  },
  {
    what: 'a connection that is refused',
    typed: `ID=$(./corral task create "Download" --repo ~/src/app --command 'curl -sm 20 https://packages.example.com/ || echo refused > REFUSED.md' --json | sed -n 's/.*"id": *"\\([^"]*\\)".*/\\1/p'); ./corral task watch "$ID" && ./corral task get "$ID" --json`,
    code: 0,
    says: /"refused"[\s\S]*"packages\.example\.com"[\s\S]*NotAllowed/,
  },
  {
    what: 'the list of them',
    typed: './corral task list',
    code: 0,
    says: /CANCELLED[\s\S]*FAILED|FAILED[\s\S]*CANCELLED/i,
  },
]

import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { git, sampleRepository, shell, type Workshop } from './round-trip.js'

/** A repository a task may start from. */
export interface Source {
  when: string
  /** Runs in `npm test` as well, not only in `npm run test:repositories`. */
  isCore?: true
  /** Makes it; answers what the task is given, and the directory to read the pushed branch from where that differs. */
  make(workshop: Workshop): Made
  /** What the agent does instead of `ordinaryWork`. */
  agent?: string
  /** Global git configuration of the sandbox. */
  gitConfig?: string
  /** Directories whose files are those of submodules. */
  submodules?: string[]
  warns?: string[]
  kept?: string[]
  /** Whether `git describe` must say the same inside and outside. */
  isDescribed?: true
}

export interface Made {
  url: string
  reader?: string
  baseBranch?: string
  submodules?: 'direct' | 'recursive'
}

/** A commit, then a change that is not committed. */
export const ordinaryWork =
  'echo one > corral.txt; git add corral.txt; git commit -qm mine; echo two >> corral.txt; mkdir -p new; echo x > new/x'

/** Changes the sample repository by a script; answers its path. */
function shaped(script: string, options: Parameters<typeof sampleRepository>[1] = {}): (workshop: Workshop) => Made {
  return (workshop) => {
    const path = sampleRepository(workshop, options)
    shell(path, script)
    return { url: path }
  }
}

function bareOf(workshop: Workshop, path: string): string {
  const bare = join(workshop.fresh('bare'), 'remote.git')
  git('/', 'clone', '-q', '--bare', path, bare)
  return bare
}

/** A repository with a submodule in `libs/one`, which has one of its own in `inner`. */
export function withSubmodules(workshop: Workshop): string {
  const place = workshop.fresh('family')
  const allow = ['-c', 'protocol.file.allow=always']
  for (const name of ['inner', 'one', 'top']) git(place, 'init', '-q', '-b', 'main', name)
  shell(join(place, 'inner'), 'echo i > i.txt; git add .; git commit -qm inner')
  git(join(place, 'one'), ...allow, 'submodule', '--quiet', 'add', '../inner', 'inner')
  shell(join(place, 'one'), 'echo 1 > one.txt; git add .; git commit -qm one')
  git(join(place, 'top'), ...allow, 'submodule', '--quiet', 'add', '../one', 'libs/one')
  git(join(place, 'top'), ...allow, 'submodule', '--quiet', 'update', '--init', '--recursive')
  shell(join(place, 'top'), 'echo top > top.txt; git add .; git commit -qm top')
  return join(place, 'top')
}

export const sources: readonly Source[] = [
  { when: 'it is an ordinary work tree', make: shaped(':'), isDescribed: true },
  {
    when: 'it is bare',
    isCore: true,
    make: (workshop) => ({ url: bareOf(workshop, sampleRepository(workshop)) }),
    isDescribed: true,
  },
  {
    when: 'it is bare and named by file://',
    make: (workshop) => {
      const reader = bareOf(workshop, sampleRepository(workshop))
      return { url: `file://${reader}`, reader }
    },
    isDescribed: true,
  },
  {
    when: 'it is shallow',
    isCore: true,
    make: (workshop) => {
      const clone = workshop.fresh('shallow')
      git('/', 'clone', '-q', '--depth=1', `file://${sampleRepository(workshop)}`, clone)
      return { url: clone }
    },
  },
  {
    when: 'it is shallow and named by file://',
    make: (workshop) => {
      const clone = join(workshop.fresh('shallow'), 'x.git')
      git('/', 'clone', '-q', '--bare', '--depth=2', `file://${sampleRepository(workshop)}`, clone)
      return { url: `file://${clone}`, reader: clone }
    },
  },
  { when: 'its HEAD is detached', isCore: true, make: shaped('git checkout -q --detach HEAD~1'), isDescribed: true },
  { when: 'its hashes are SHA-256', isCore: true, make: shaped(':', { format: 'sha256' }), isDescribed: true },
  {
    when: 'its hashes are SHA-256 and it is bare',
    make: (workshop) => {
      const reader = bareOf(workshop, sampleRepository(workshop, { format: 'sha256' }))
      return { url: `file://${reader}`, reader }
    },
  },
  {
    when: 'it is shallow with SHA-256',
    make: (workshop) => {
      const clone = workshop.fresh('shallow')
      git('/', 'clone', '-q', '--depth=2', `file://${sampleRepository(workshop, { format: 'sha256' })}`, clone)
      return { url: clone }
    },
  },
  {
    when: 'it is a linked work tree',
    isCore: true,
    make: (workshop) => {
      const path = sampleRepository(workshop)
      const tree = join(workshop.fresh('tree'), 'linked')
      git(path, 'worktree', 'add', '-q', '-b', 'side', tree, 'HEAD~1')
      return { url: tree }
    },
    isDescribed: true,
  },
  {
    when: 'it is a linked work tree of a bare repository',
    make: (workshop) => {
      const bare = bareOf(workshop, sampleRepository(workshop))
      const tree = join(workshop.fresh('tree'), 'linked')
      git(bare, 'worktree', 'add', '-q', '-b', 'side', tree, 'main')
      return { url: tree }
    },
  },
  {
    when: 'it borrows its objects from another',
    make: (workshop) => {
      const clone = workshop.fresh('shared')
      git('/', 'clone', '-q', '--shared', sampleRepository(workshop), clone)
      return { url: clone }
    },
  },
  { when: 'refs and objects are packed', make: shaped('git gc -q; git pack-refs --all'), isDescribed: true },
  {
    when: 'it has changes nobody committed',
    make: shaped('echo dirty >> a.txt; git rm -q --cached extra.txt; echo u > u'),
  },
  {
    when: 'it is in the middle of a merge',
    make: shaped(
      'git checkout -qb s HEAD~1; echo s > extra.txt; git add .; git commit -qm s; git checkout -q main; git merge -q s || true',
    ),
  },
  { when: 'it has locks left behind', make: shaped('touch .git/index.lock .git/HEAD.lock .git/packed-refs.lock') },
  { when: 'the base branch is called trunk', make: shaped(':', { branch: 'trunk' }) },
  {
    when: 'the base branch has a name of many kinds of letters',
    make: (workshop) => ({
      ...shaped('git branch "größe/日本/a.b+c@x#1"')(workshop),
      baseBranch: 'größe/日本/a.b+c@x#1',
    }),
  },
  {
    when: 'the base is another branch than the default one',
    make: (workshop) => ({
      ...shaped('git checkout -qb older HEAD~1; git checkout -q main')(workshop),
      baseBranch: 'older',
    }),
  },
  {
    when: 'a tag has the name of the base branch',
    make: shaped('git tag main HEAD~2'),
  },
  {
    when: 'it has tags of every kind',
    isCore: true,
    make: shaped(
      'git tag light; git tag -am nested nested v1; git tag tree HEAD^{tree}; git tag blob HEAD:a.txt; git tag -am far far HEAD~2; git tag "späte/räume"',
    ),
    isDescribed: true,
  },
  { when: 'it has notes and replaced commits', make: shaped('git notes add -m note; git replace --graft HEAD HEAD~2') },
  {
    when: 'its history has an octopus merge and unrelated roots',
    make: shaped(
      'for b in x y z; do git checkout -q -b $b v1; echo $b > $b.txt; git add .; git commit -qm $b; done; git checkout -q main; git merge -q --no-edit x y z; git checkout -q --orphan other; git rm -rqf .; echo o > o.txt; git add .; git commit -qm root; git checkout -q main; git merge -q --allow-unrelated-histories --no-edit other',
    ),
    isDescribed: true,
  },
  {
    when: 'its commits are in other encodings, signed and empty',
    make: shaped(
      String.raw`printf 'gr\374n' > m; git -c i18n.commitEncoding=ISO-8859-1 commit -q --allow-empty -F m; git commit -q --allow-empty --allow-empty-message -m ''; t=$(git write-tree); c=$(printf 'tree %s\nparent %s\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n' "$t" "$(git rev-parse HEAD)" | git hash-object -t commit -w --stdin); git reset -q --hard $c; rm -f m`,
    ),
  },
  {
    when: 'its first commit has no files',
    make: shaped('git checkout -q --orphan void; git rm -rqf .; git commit -q --allow-empty -m void'),
  },
  {
    when: 'its names are bytes git has to quote',
    isCore: true,
    make: shaped(
      String.raw`mkdir -p 'späte räume'; echo 1 > 'späte räume/ein "zitat".txt'; echo 2 > "$(printf 'tab\there')"; echo 3 > "$(printf 'line\nbreak')"; echo 4 > "$(printf 'latin\344')"; echo 5 > ./-dash; echo 6 > 'back\slash'; git add -A; git commit -qm names`,
    ),
    agent: String.raw`echo more >> "$(printf 'line\nbreak')"; echo more >> ./-dash; rm "$(printf 'latin\344')"; echo n > "$(printf 'new\nline')"`,
  },
  {
    when: 'its names differ only in case',
    make: shaped('echo a > readme; echo b > README; echo c > ReadMe; git add -A; git commit -qm case'),
    agent: 'echo more >> README; git mv readme readme2',
  },
  {
    when: 'its paths are long',
    make: shaped(
      'n=$(printf "%0250d" 0); p=$n/$n/$n/$n; mkdir -p $p; echo deep > $p/$n; git add -A; git commit -qm long',
    ),
  },
  {
    when: 'it has links that lead out, in circles and nowhere',
    make: shaped(
      'ln -s / root; ln -s loop loop; ln -s ../../.. up; ln -s "" empty 2>/dev/null || true; git add -A; git commit -qm links',
    ),
    agent: 'ln -sfn /etc/passwd root; rm loop; echo file > loop',
  },
  {
    when: 'it stores line endings by attribute',
    isCore: true,
    make: shaped(
      String.raw`printf '*.txt text eol=crlf\n*.lf text eol=lf\n*.bin -text\n' > .gitattributes; printf 'a\nb\n' > w.txt; printf 'a\n' > u.lf; printf 'a\r\nb\n' > mixed.bin; git add -A; git commit -qm eol`,
    ),
    agent: String.raw`printf 'a\r\nb\r\nc\r\n' > w.txt; printf 'x\r\n' > new.txt`,
  },
  {
    when: 'it has files with CRLF and no attribute',
    make: shaped(String.raw`printf 'a\r\nb\r\n' > dos.txt; git add -A; git commit -qm dos`),
    agent: String.raw`printf 'c\r\n' >> dos.txt; printf 'mixed\r\nends\n' > m.txt`,
  },
  {
    when: 'it expands $Id$ and stores UTF-16',
    make: shaped(
      String.raw`printf '*.id ident\n*.u16 text working-tree-encoding=UTF-16LE-BOM eol=lf\n' > .gitattributes; printf '$Id$\n' > x.id; printf '\377\376a\000\n\000' > x.u16; git add -A; git commit -qm attributes`,
    ),
    agent: String.raw`printf '\377\376b\000\n\000' > y.u16; echo more > z.txt`,
  },
  {
    when: 'its attributes name a filter nobody has here',
    isCore: true,
    make: shaped("echo '*.c filter=indent' > .gitattributes; echo 'int  x;' > x.c; git add -A; git commit -qm filter"),
    agent: "echo 'int  y;' > y.c",
    warns: ['FiltersNotApplied'],
  },
  {
    when: 'it uses Git LFS and the sandbox has git-lfs',
    isCore: true,
    make: shaped(
      String.raw`echo '*.psd filter=lfs diff=lfs -text' > .gitattributes; printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 7\n' 1 > old.psd; git add -A; git commit -qm lfs`,
    ),
    gitConfig: `[filter "lfs"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n\tprocess = git-lfs filter-process\n\trequired = true\n`,
    agent:
      'head -c 3000 /dev/urandom > new.psd; git add -A; git commit -qm mine; head -c 3000 /dev/urandom > loose.psd',
    warns: ['LfsNotFetched'],
  },
  {
    when: 'the agent begins to use Git LFS',
    make: shaped(':'),
    agent: String.raw`printf content > c; o=$(sha256sum c | cut -c 1-64); d=.git/lfs/objects/$(echo $o | cut -c 1-2)/$(echo $o | cut -c 3-4); mkdir -p $d; mv c $d/$o; printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 7\n' $o > a.psd; git add -A; git commit -qm mine`,
    warns: ['LfsObjectKept'],
    kept: ['lfs/ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73'],
  },
  {
    when: 'it ignores files that it tracks',
    make: shaped(
      "echo v > y.log; git add -f y.log; git commit -qm tracked; echo '*' > .gitignore; git add -f .gitignore; git commit -qm 'ignore all'",
    ),
    agent: 'echo w > y.log; git commit -qam changed; echo more >> a.txt',
  },
  {
    when: 'it has a link to a commit and no .gitmodules',
    make: shaped(
      'git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),lost; git commit -qm link; mkdir lost',
    ),
  },
  {
    when: 'it has submodules that were not asked for',
    make: (workshop) => ({ url: withSubmodules(workshop) }),
    submodules: ['libs/one'],
    warns: ['SubmodulesNotFetched'],
  },
  {
    when: 'it has a submodule that was asked for',
    isCore: true,
    make: (workshop) => ({ url: withSubmodules(workshop), submodules: 'direct' }),
    agent: `test "$(cat libs/one/one.txt)" = 1; test -z "$(ls libs/one/inner)"; git submodule status | grep -q '^ '; ${ordinaryWork}`,
    submodules: ['libs/one'],
  },
  {
    when: 'it has submodules in submodules',
    make: (workshop) => ({ url: withSubmodules(workshop), submodules: 'recursive' }),
    agent: `test "$(cat libs/one/inner/i.txt)" = i; test -z "$(git submodule status --recursive | grep -v '^ ')"; ${ordinaryWork}`,
    submodules: ['libs/one'],
  },
  {
    when: 'the agent leaves changes in a submodule',
    isCore: true,
    make: (workshop) => ({ url: withSubmodules(workshop), submodules: 'direct' }),
    agent: 'echo changed > libs/one/one.txt; echo new > libs/one/new.txt; echo t > t.txt',
    submodules: ['libs/one'],
    warns: ['SubmoduleChanged'],
    kept: ['submodules/libs/one'],
  },
  {
    when: 'the agent commits in a submodule',
    make: (workshop) => ({ url: withSubmodules(workshop), submodules: 'direct' }),
    agent: 'cd libs/one; echo changed > one.txt; git commit -qam inside; cd ../..; echo t > t.txt',
    submodules: ['libs/one'],
    warns: ['SubmoduleChanged'],
    kept: ['submodules/libs/one'],
  },
  {
    when: 'the agent removes a submodule',
    make: (workshop) => ({ url: withSubmodules(workshop), submodules: 'direct' }),
    agent: 'git rm -qf libs/one; echo t > t.txt',
  },
  {
    when: 'the agent moves a submodule',
    isCore: true,
    make: (workshop) => ({ url: withSubmodules(workshop), submodules: 'direct' }),
    agent: 'git mv libs third; git commit -qm moved; echo t > t.txt',
    submodules: ['third/one'],
  },
  {
    when: 'the agent moves a submodule that was not asked for, and does not commit',
    make: (workshop) => ({ url: withSubmodules(workshop) }),
    agent: 'git mv libs third',
    submodules: ['third/one'],
    warns: ['SubmodulesNotFetched'],
  },
  {
    when: 'the agent moves a submodule and works in it',
    make: (workshop) => ({ url: withSubmodules(workshop), submodules: 'direct' }),
    agent:
      'git mv libs third; git commit -qm moved; cd third/one; echo 2 > one.txt; git commit -qam inside; echo 3 > new.txt',
    submodules: ['third/one'],
    warns: ['SubmoduleChanged'],
    kept: ['submodules/third/one'],
  },
  {
    when: 'the agent leaves changes in a submodule and in the one inside it',
    isCore: true,
    make: (workshop) => ({ url: withSubmodules(workshop), submodules: 'recursive' }),
    agent: 'echo new > libs/one/new.txt; echo new > libs/one/inner/new.txt; echo t > t.txt',
    submodules: ['libs/one'],
    warns: ['SubmoduleChanged', 'SubmoduleChanged'],
    kept: ['submodules/libs/one', 'submodules/libs/one+inner'],
  },
  {
    when: 'the agent leaves a branch and a stash in a submodule and a stash above it',
    make: (workshop) => ({ url: withSubmodules(workshop), submodules: 'direct' }),
    agent:
      'echo more > top.txt; git stash -q; cd libs/one; git checkout -q -b fix; echo 2 > one.txt; git commit -qam fix; git checkout -q -; echo 3 > one.txt; git stash -q; cd ../..; echo t > t.txt',
    submodules: ['libs/one'],
    warns: ['StashKept', 'SubmoduleChanged'],
    kept: ['stash/0', 'submodules/libs/one+branches/fix', 'submodules/libs/one+stash/0'],
  },
  {
    when: 'the subject of its last commit has three hundred thousand letters',
    make: shaped(`head -c 300000 /dev/zero | tr '\\0' x | git commit -q --allow-empty -F -`),
  },
  {
    when: 'the agent deletes .git with submodules in place',
    make: (workshop) => ({ url: withSubmodules(workshop), submodules: 'direct' }),
    agent: 'rm -rf .git; echo t > t.txt',
    submodules: ['libs/one'],
    warns: ['HistoryLost', 'PathLeftOut', 'RepositoryDamaged'],
  },
]

/** Sizes that take minutes; only in the full size. */
export const largeSources: readonly Source[] = [
  {
    when: 'it has 10,000 commits',
    make: (workshop) => ({ url: generated(workshop, { commits: 10_000, files: 100 }) }),
    isDescribed: true,
  },
  { when: 'it has 50,000 files', make: (workshop) => ({ url: generated(workshop, { commits: 1, files: 50_000 }) }) },
  {
    when: 'it has 500 MB that cannot be compressed',
    make: (workshop) => ({ url: generated(workshop, { commits: 1, files: 50, fileBytes: 10 * 1024 * 1024 }) }),
  },
  {
    when: 'the agent writes 20,000 files',
    make: shaped(':'),
    agent:
      'i=0; while [ $i -lt 20000 ]; do mkdir -p many/$((i % 100)); echo $i > many/$((i % 100))/$i; i=$((i+1)); done',
  },
  {
    when: 'the agent writes a file of 200 MB',
    make: shaped(':'),
    agent: 'head -c 200000000 /dev/urandom > huge.bin',
    warns: ['LargeFile'],
  },
]

/** A repository from a stream for `git fast-import`: commits that each change one file, and a tag now and then. */
function generated(workshop: Workshop, size: { commits: number; files: number; fileBytes?: number }): string {
  const path = workshop.fresh('generated')
  git(path, 'init', '-q', '-b', 'main', '.')
  const stream = join(path, '.git/stream')
  writeFileSync(stream, '')
  let seed = 1
  const content = (bytes: number): Buffer => {
    const words = new Uint32Array(Math.ceil(bytes / 4))
    for (let at = 0; at < words.length; at++) {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
      words[at] = seed ^ (seed >>> 15)
    }
    return Buffer.from(words.buffer).subarray(0, bytes)
  }
  const file = (name: string, data: Buffer): Buffer =>
    Buffer.concat([Buffer.from(`M 100644 inline ${name}\ndata ${data.length}\n`), data, Buffer.from('\n')])
  const commit = (number: number): string =>
    `commit refs/heads/main\ncommitter T <t@localhost> ${1_600_000_000 + number} +0000\ndata 4\nstep\n`
  appendFileSync(stream, commit(0))
  for (let at = 0; at < size.files; at++)
    appendFileSync(stream, file(`d${at % 97}/e${at % 13}/f${at}`, content(size.fileBytes ?? 60)))
  for (let number = 1; number < size.commits; number++) {
    appendFileSync(stream, commit(number))
    appendFileSync(stream, file(`d${number % 97}/step`, content(80)))
    if (number % 1_000 === 0)
      appendFileSync(
        stream,
        `tag v${number}\nfrom refs/heads/main\ntagger T <t@localhost> ${number} +0000\ndata 1\nt\n`,
      )
  }
  shell(path, 'git fast-import --quiet < .git/stream; rm .git/stream; git reset -q --hard')
  mkdirSync(path, { recursive: true })
  return path
}

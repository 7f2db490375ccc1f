import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Puts the sources of a public project, with its tests, into a directory that does not exist yet. */
export type Source = (directory: string, scratch: string) => void

const run = (program: string, args: readonly string[], cwd: string, env: Record<string, string> = {}): string =>
  execFileSync(program, args, {
    cwd,
    env: { ...process.env, ...env },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 64 * 1024 * 1024,
  })

/** A source distribution from PyPI. */
export function sdist(name: string, version: string): Source {
  return (directory, scratch) => {
    run('pip', ['download', '-q', '--no-deps', '--no-binary', ':all:', '-d', scratch, `${name}==${version}`], scratch)
    unpack(join(scratch, found(scratch, /\.tar\.gz$/)), directory)
  }
}

/** A Go module as the proxy has it. */
export function goModule(path: string, version: string): Source {
  return (directory, scratch) => {
    const { Dir } = JSON.parse(
      run('go', ['mod', 'download', '-json', `${path}@${version}`], scratch, { GOFLAGS: '-modcacherw' }),
    ) as { Dir: string }
    cpSync(Dir, directory, { recursive: true })
    run('chmod', ['-R', 'u+w', directory], scratch)
  }
}

/** A crate as its registry has it, with the lock file it was published with. */
export function crate(name: string, version: string): Source {
  return (directory, scratch) => {
    const home = join(scratch, 'cargo-home')
    mkdirSync(join(scratch, 'src'))
    writeFileSync(join(scratch, 'src', 'lib.rs'), '')
    writeFileSync(
      join(scratch, 'Cargo.toml'),
      `[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n\n[dependencies]\n${name} = "=${version}"\n`,
    )
    run('cargo', ['fetch', '-q'], scratch, { CARGO_HOME: home })
    const registry = join(home, 'registry', 'src')
    cpSync(join(registry, found(registry, /./), `${name}-${version}`), directory, { recursive: true })
    rmSync(join(directory, '.cargo-ok'), { force: true })
  }
}

/** The original archive of a Debian source package, from the mirrors that apt is set up for. */
export function debianSource(name: string): Source {
  return (directory, scratch) => {
    const format = 'deb-src $(SITE) $(RELEASE) $(COMPONENT)'
    const targets = run('apt-get', ['indextargets', '--format', format, 'Created-By: Packages'], scratch)
    writeFileSync(join(scratch, 'sources.list'), [...new Set(targets.split('\n'))].join('\n'))
    mkdirSync(join(scratch, 'lists', 'partial'), { recursive: true })
    const options = [
      `Dir::Etc::sourcelist=${join(scratch, 'sources.list')}`,
      'Dir::Etc::sourceparts=-',
      `Dir::State::lists=${join(scratch, 'lists')}`,
      `Dir::Cache=${join(scratch, 'cache')}`,
      `APT::Sandbox::User=${process.env.USER ?? 'root'}`,
    ].flatMap((option) => ['-o', option])
    run('apt-get', [...options, '-q', 'update'], scratch)
    run('apt-get', [...options, '-q', 'source', '--download-only', '--tar-only', name], scratch)
    unpack(join(scratch, found(scratch, /\.orig\.tar\.\w+$/)), directory)
  }
}

/** The one directory inside an archive becomes `directory`. */
function unpack(archive: string, directory: string): void {
  const parent = `${directory}.unpacked`
  mkdirSync(parent)
  run('tar', ['xf', archive, '-C', parent], parent)
  renameSync(join(parent, found(parent, /./)), directory)
  rmSync(parent, { recursive: true })
}

function found(directory: string, like: RegExp): string {
  const name = readdirSync(directory).find((each) => like.test(each))
  if (!name) throw new Error(`there is no ${like} in ${directory}`)
  return name
}

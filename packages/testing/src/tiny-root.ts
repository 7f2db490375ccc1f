import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * A tar archive of a root file system with these programs of the machine and their libraries, and `/etc/marker` with the
 * text; of others their libraries alone.
 * Large enough to be `/` of a pod, small enough to be made by every test that wants one.
 */
export function tinyRoot(
  directory: string,
  {
    programs,
    librariesOf = [],
    marker,
  }: { programs: readonly string[]; librariesOf?: readonly string[]; marker: string },
): string {
  const root = join(directory, 'tiny-root')
  const put = (path: string): void => {
    const target = join(root, path)
    mkdirSync(dirname(target), { recursive: true })
    copyFileSync(realpathSync(path), target)
  }
  mkdirSync(join(root, 'etc'), { recursive: true })
  mkdirSync(join(root, 'usr/bin'), { recursive: true })
  symlinkSync('usr/bin', join(root, 'bin'))
  writeFileSync(join(root, 'etc/marker'), marker)
  for (const program of [...programs, ...librariesOf]) {
    const path = execFileSync('which', [program], { encoding: 'utf8' }).trim()
    const libraries = execFileSync('ldd', [path], { encoding: 'utf8' }).matchAll(/(?:=> |^\s+)(\/\S+) \(/gm)
    if (programs.includes(program)) copyFileSync(realpathSync(path), join(root, 'usr/bin', program))
    for (const [, library = ''] of libraries) put(library)
  }
  const archive = join(directory, 'tiny-root.tar')
  execFileSync('tar', ['cf', archive, '-C', root, '.'])
  return archive
}

import { closeSync, constants, lstatSync, openSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { join, posix, sep } from 'node:path'
import type { BindMount, LaunchPlan } from '../../isolation/isolation.js'
import { IsolationError } from '../../isolation/isolation-error.js'
import { homeOf } from './cell-files.js'
import type { CellDirectories } from './cell-strategy.js'

/** Made by the tier in every cell that has no image's root. */
const linksOfTheTier: Readonly<Record<string, string>> = { '/var/run': '/run', '/var/tmp': '/tmp' }
/** What an image has there is not shown. */
const madeByTheTier = ['/proc', '/dev', '/run', '/tmp']
/** As many as the kernel follows. */
const mostLinks = 40

/**
 * The plan with every mount, HOME and /tmp among them, where it really lands. bwrap follows links in a target, and while it
 * does the whole host lies beside the new root: a link of an image, or one that a pod has put into a volume below which another
 * is mounted, would have the next mount take its source from wherever the pod likes. So links of an image's root are
 * resolved here, below that root, and a target that leads over a link of a volume is refused. What lies within a pod's
 * reach gets an identity as well, for a link that is put there after this look.
 */
export function placedPlan(
  plan: LaunchPlan,
  directories: Pick<CellDirectories, 'homeSource' | 'tmpSource'>,
): LaunchPlan {
  const covered = new Set<string>()
  const place = <T extends { target: string }>(each: T): T => {
    const target = resolveTarget(plan.root, each.target, covered)
    covered.add(target)
    return { ...each, target }
  }
  // What is mounted hides the links of the root below it, so parents come first.
  const mounts = [...plan.mounts].sort(byDepth).map(place)
  const tmpfs = [...plan.tmpfs].sort(byDepth).map(place)
  const home = resolveTarget(plan.root, homeOf(plan), covered)
  const added: BindMount[] = [
    { source: directories.tmpSource, target: '/tmp', readOnly: false },
    { source: directories.homeSource, target: home, readOnly: false },
  ].filter(({ target }) => target !== '/' && !covered.has(target))
  const all = [...added, ...mounts]
  for (const { target } of tmpfs) checkWay(target, parentOf(target, all))
  return {
    ...plan,
    env: { ...plan.env, HOME: home },
    tmpfs,
    mounts: all.map((mount) => {
      const parent = parentOf(mount.target, all)
      if (!parent) return mount
      checkWay(mount.target, parent)
      return { ...mount, identity: mount.identity ?? identityOf(mount.source) }
    }),
  }
}

const byDepth = (a: { target: string }, b: { target: string }): number =>
  a.target.split('/').length - b.target.split('/').length

const isAtOrBelow = (path: string, parent: string): boolean =>
  path === parent || path.startsWith(parent === '/' ? '/' : `${parent}/`)

/** The mount that a target lies in; the nearest of them. */
function parentOf(target: string, mounts: readonly BindMount[]): BindMount | undefined {
  return mounts
    .filter((mount) => mount.target !== target && isAtOrBelow(target, mount.target))
    .sort((a, b) => b.target.length - a.target.length)[0]
}

/** Walks from the parent's source to the target on open handles. What is not there yet is made by bwrap, and is no link. */
function checkWay(target: string, parent: BindMount | undefined): void {
  if (!parent) return
  const parts = posix.relative(parent.target, target).split('/')
  const handles = [openSync(parent.source, constants.O_DIRECTORY | constants.O_RDONLY)]
  try {
    for (const part of parts) {
      const path = join('/proc/self/fd', String(handles.at(-1)), part)
      const found = lstatSync(path, { throwIfNoEntry: false })
      if (found?.isSymbolicLink() && !(parent.readOnly && staysInside(parent.source, parts)))
        throw new IsolationError(
          'StartFailed',
          `${target} cannot be mounted: "${part}" on the way to it is a link in ${parent.target}`,
        )
      if (!found?.isDirectory()) return
      handles.push(openSync(path, constants.O_DIRECTORY | constants.O_NOFOLLOW))
    }
  } finally {
    for (const handle of handles) closeSync(handle)
  }
}

/** Files from the API hang on links of our own. */
function staysInside(source: string, parts: readonly string[]): boolean {
  try {
    return realpathSync(join(source, ...parts)).startsWith(realpathSync(source) + sep)
  } catch {
    return false // It leads to nothing that is here.
  }
}

function identityOf(source: string): string {
  const { dev, ino } = statSync(source, { bigint: true })
  return `${dev}:${ino}`
}

/** Where a path of the cell leads: links of the image's root, or of the tier, are followed below that root. */
function resolveTarget(root: string | undefined, target: string, covered: ReadonlySet<string>): string {
  const hidesLinks = root === undefined ? covered : new Set([...covered, ...madeByTheTier])
  let waiting = partsOf(target)
  let at = '/'
  for (let links = 0; waiting.length > 0; ) {
    const [part = '', ...rest] = waiting
    const next = posix.join(at, part)
    const isHidden = [...hidesLinks].some((each) => isAtOrBelow(next, each))
    const link = isHidden ? undefined : root === undefined ? linksOfTheTier[next] : linkAt(join(root, next))
    if (link === undefined) {
      at = next
      waiting = rest
      continue
    }
    if (++links > mostLinks) throw new IsolationError('StartFailed', `too many links on the way to ${target}`)
    waiting = [...partsOf(posix.resolve(at, link)), ...rest]
    at = '/'
  }
  return at
}

const partsOf = (path: string): string[] => posix.resolve('/', path).split('/').filter(Boolean)

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined // Something else, or nothing yet.
  }
}

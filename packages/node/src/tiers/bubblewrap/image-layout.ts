import { readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { homeOf } from '../../cradle/server/cell-files.js'
import type { LaunchPlan } from '../../isolation/isolation.js'

/** One entry of a root that is put together from an image: a link, a read-only mount, or a directory of the cell's own. */
export interface ImageEntryMount {
  target: string
  source?: string
  link?: string
}

/** Made by the tier itself in every cell. */
const ofTheTier = new Set(['/proc', '/dev', '/run', '/tmp'])

/**
 * What the root of a cell with an image consists of. Everything of the image is read-only; a directory in which the plan mounts
 * something that the image has no place for becomes the cell's own, with the image's entries in it.
 */
export function imageLayout(plan: Pick<LaunchPlan, 'root' | 'mounts' | 'tmpfs' | 'env'>): ImageEntryMount[] {
  const targets = [...plan.mounts.map(({ target }) => target), ...plan.tmpfs.map(({ target }) => target), homeOf(plan)]
  return entriesOf(plan.root ?? '/', '/', targets)
}

function entriesOf(root: string, directory: string, targets: readonly string[]): ImageEntryMount[] {
  return readdirSync(join(root, directory), { withFileTypes: true }).flatMap((entry) => {
    const target = join(directory, entry.name)
    const source = join(root, target)
    if (ofTheTier.has(target) || targets.includes(target)) return []
    if (entry.isSymbolicLink()) return [{ target, link: readlinkSync(source) }]
    const isParent = entry.isDirectory() && targets.some((each) => each.startsWith(`${target}/`))
    return isParent ? [{ target }, ...entriesOf(root, target, targets)] : [{ target, source }]
  })
}

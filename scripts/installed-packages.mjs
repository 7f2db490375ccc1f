import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Packages of package-lock.json that every machine needs and that are not installed: an npm that was interrupted leaves such. */
export function missingPackages(root) {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  return Object.entries(packages)
    .filter(
      ([path, { optional, devOptional, peer, link }]) =>
        path.includes('node_modules/') && !optional && !devOptional && !peer && !link,
    )
    .map(([path]) => path)
    .filter((path) => !existsSync(join(root, path, 'package.json')))
}

import { realpathSync } from 'node:fs'
import type { ImageEntry } from '../launch/image-map.js'
import type { ImportedImage } from './image-directory.js'

/** Where the platform's own Node lies in a pod with an image's root, which may have another or none. */
const nodeInside = '/opt/corral/node'

/** Below the data directory. */
export const imagesDirectory = 'images'

/**
 * The entry for a container with this image's root. Without `program` it runs what the image says; with it, what that says, on
 * the platform's own Node where it is a Node program.
 */
export function rootedImage(
  { root, argv, env, workingDir, digest }: ImportedImage,
  program: ImageEntry | undefined,
): ImageEntry {
  const ofImage = { ...env, CORRAL_ROOT_DIGEST: digest }
  if (!program) return { root, env: ofImage, ...(argv ? { argv } : {}), ...(workingDir ? { workingDir } : {}) }
  const isNode = program.argv?.[0] === 'node'
  return {
    ...program,
    root,
    env: { ...ofImage, ...program.env },
    ...(isNode && program.argv ? { argv: [nodeInside, ...program.argv.slice(1)] } : {}),
    mounts: [
      ...(program.mounts ?? []),
      ...(isNode ? [{ source: realpathSync(process.execPath), target: nodeInside, readOnly: true }] : []),
    ],
  }
}

import type { BindMount } from '../isolation/isolation.js'

/** What an image name stands for on this machine. */
export interface ImageEntry {
  /** Runs where the container names no command; the container's `args` follow it. */
  argv?: readonly string[]
  env?: Readonly<Record<string, string>>
  mounts?: readonly BindMount[]
  workingDir?: string
  /** The root file system of an image that was imported; the host's tools where absent. */
  root?: string
}

/**
 * Image repositories without tag or digest (`corral/daemon`) and what they run; a star for the registry stands for
 * any. Every other image is the host's tools.
 */
export type ImageMap = Readonly<Record<string, ImageEntry>>

/** `registry/name:tag@digest` without tag and digest. */
export function imageRepository(image: string): string {
  const withoutDigest = image.split('@')[0] ?? ''
  const slash = withoutDigest.lastIndexOf('/')
  const colon = withoutDigest.indexOf(':', slash + 1)
  return colon < 0 ? withoutDigest : withoutDigest.slice(0, colon)
}

export function findImage(images: ImageMap, image: string): ImageEntry | undefined {
  const repository = imageRepository(image)
  const anywhere = `*/${repository.slice(repository.lastIndexOf('/') + 1)}`
  return [repository, anywhere].filter((name) => Object.hasOwn(images, name)).map((name) => images[name])[0]
}

import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { lstat, readFile, realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'
import * as z from 'zod'
import { plainBytes } from './decompress.js'
import { ImageError } from './image-error.js'

/** What an image says about the processes started from it. */
export interface ImageConfig {
  argv?: string[]
  env?: Record<string, string>
  workingDir?: string
}

/** An image as layers of tar archives, the lowest first. */
export interface LayeredImage {
  digest: string
  config: ImageConfig
  layers: (() => AsyncIterable<Uint8Array>)[]
}

/** Each is read twice, also one that is named again and again; tools stop at 127. */
const mostLayers = 500

const descriptor = z.object({
  digest: z.string(),
  mediaType: z.string().optional(),
  platform: z.object({ architecture: z.string(), os: z.string() }).optional(),
})
const indexSchema = z.object({ manifests: z.array(descriptor) })
const manifestSchema = z.object({ config: descriptor, layers: z.array(descriptor).max(mostLayers) })
const dockerSchema = z.array(z.object({ Config: z.string(), Layers: z.array(z.string()).max(mostLayers) })).min(1)
const configSchema = z.object({
  architecture: z.string(),
  os: z.string().optional(),
  config: z
    .object({
      Env: z.array(z.string()).nullish(),
      Entrypoint: z.array(z.string()).nullish(),
      Cmd: z.array(z.string()).nullish(),
      WorkingDir: z.string().nullish(),
    })
    .nullish(),
  rootfs: z.object({ diff_ids: z.array(z.string()) }).nullish(),
})

const maxJsonBytes = 4 * 1024 * 1024
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }
const hostArchitecture = architectures[process.arch] ?? process.arch

/** Reads an OCI image layout, or what `docker save` and `podman save` unpack to. All content is checked against its digest. */
export async function readLayout(directory: string): Promise<LayeredImage> {
  const has = async (name: string): Promise<boolean> => (await lstat(join(directory, name)).catch(() => null)) !== null
  if (await has('index.json')) return fromIndex(directory)
  if (await has('manifest.json')) return fromDocker(directory)
  throw new ImageError('InvalidArchive', 'there is neither an index.json nor a manifest.json: no image of a known form')
}

async function fromIndex(directory: string): Promise<LayeredImage> {
  let { manifests } = parsed(indexSchema, await readJson(directory, 'index.json'), 'index.json')
  for (let depth = 0; depth < 4; depth++) {
    const here = manifests.filter(({ platform: on }) => on?.os === 'linux' && on.architecture === hostArchitecture)
    const fitting = here.length > 0 ? here : manifests.filter(({ platform }) => platform === undefined)
    const [chosen] = fitting
    if (!chosen) throw new ImageError('Unsupported', `the image has no manifest for linux/${hostArchitecture}`)
    const images = new Set(fitting.map(({ digest }) => digest)).size
    if (depth === 0 && images > 1) throw severalImages(images)
    const content = await readJsonBlob(directory, chosen.digest)
    const nested = indexSchema.safeParse(content)
    if (nested.success) {
      manifests = nested.data.manifests
      continue
    }
    const manifest = parsed(manifestSchema, content, 'the manifest')
    const { config } = imageConfig(await readJsonBlob(directory, manifest.config.digest))
    const layers = manifest.layers.map(
      ({ digest }) =>
        () =>
          checkedBlob(directory, digest),
    )
    return { digest: chosen.digest, config, layers }
  }
  throw new ImageError('InvalidArchive', 'the index leads to an index, and so on')
}

async function fromDocker(directory: string): Promise<LayeredImage> {
  const images = parsed(dockerSchema, await readJson(directory, 'manifest.json'), 'manifest.json')
  const [image] = images
  if (!image) throw new ImageError('InvalidArchive', 'manifest.json names no image')
  if (images.length > 1) throw severalImages(images.length)
  const text = await readSmall(directory, nameIn(image.Config))
  const digest = `sha256:${createHash('sha256').update(text).digest('hex')}`
  const [named] = /[0-9a-f]{64}/.exec(image.Config) ?? []
  if (named !== undefined && digest !== `sha256:${named}`) throw mismatch(image.Config)
  const { config, layerIds } = imageConfig(jsonOf(text.toString('utf8'), image.Config))
  if (layerIds.length !== image.Layers.length)
    throw new ImageError(
      'InvalidArchive',
      `manifest.json names ${image.Layers.length} layers, ${image.Config} ${layerIds.length}`,
    )
  const layers = image.Layers.map((name, index) => () => checkedLayer(directory, nameIn(name), layerIds[index] ?? ''))
  return { digest, config, layers }
}

function nameIn(name: string): string {
  if (!/^[\w.:-]+(\/[\w.:-]+)*$/.test(name) || name.split('/').includes('..'))
    throw new ImageError('Unsafe', `manifest.json names a file outside of the image: ${name}`)
  return name
}

/**
 * The real path of a file of the layout. A link may lead to another file of it, as `docker save` has them for layers that are the
 * same, and nowhere else; pipes and devices, which would be read for ever, are none.
 */
async function fileIn(directory: string, name: string): Promise<string> {
  const path = await realpath(join(directory, name)).catch(missing(name))
  if (!path.startsWith((await realpath(directory)) + sep))
    throw new ImageError('Unsafe', `${name} leads out of the image`)
  if (!(await lstat(path)).isFile()) throw new ImageError('InvalidArchive', `${name} is no file`)
  return path
}

async function readSmall(directory: string, name: string): Promise<Buffer> {
  const path = await fileIn(directory, name)
  if ((await lstat(path)).size > maxJsonBytes)
    throw new ImageError('InvalidArchive', `${name} is too large to be what it is named`)
  return readFile(path)
}

function imageConfig(content: unknown): { config: ImageConfig; layerIds: string[] } {
  const { architecture, os = 'linux', config, rootfs } = parsed(configSchema, content, 'the configuration')
  if (os !== 'linux' || architecture !== hostArchitecture)
    throw new ImageError(
      'Unsupported',
      `the image is for ${os}/${architecture}, this machine is linux/${hostArchitecture}`,
    )
  const argv = [...(config?.Entrypoint ?? []), ...(config?.Cmd ?? [])]
  const env = (config?.Env ?? []).flatMap((each) => {
    const equals = each.indexOf('=')
    return equals > 0 ? [[each.slice(0, equals), each.slice(equals + 1)]] : []
  })
  return {
    config: {
      ...(argv.length > 0 ? { argv } : {}),
      ...(env.length > 0 ? { env: Object.fromEntries(env) } : {}),
      ...(config?.WorkingDir?.startsWith('/') ? { workingDir: config.WorkingDir } : {}),
    },
    layerIds: rootfs?.diff_ids ?? [],
  }
}

function blobName(digest: string): string {
  const [, hex] = /^sha256:([0-9a-f]{64})$/.exec(digest) ?? []
  if (!hex) throw new ImageError('Unsupported', `the digest "${digest}" is not of sha256`)
  return join('blobs', 'sha256', hex)
}

async function readJsonBlob(directory: string, digest: string): Promise<unknown> {
  const content = await readSmall(directory, blobName(digest))
  if (`sha256:${createHash('sha256').update(content).digest('hex')}` !== digest) throw mismatch(digest)
  return jsonOf(content.toString('utf8'), digest)
}

/** The layer, unpacked, once its content is known to match its digest. */
async function* checkedBlob(directory: string, digest: string): AsyncGenerator<Uint8Array> {
  const path = await fileIn(directory, blobName(digest))
  const hash = createHash('sha256')
  for await (const part of createReadStream(path)) hash.update(part as Buffer)
  if (`sha256:${hash.digest('hex')}` !== digest) throw mismatch(digest)
  yield* plainBytes(createReadStream(path))
}

/** The layer, unpacked; the digest is of what is unpacked, so another content is refused at its end, before the image is used. */
async function* checkedLayer(directory: string, name: string, digest: string): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256')
  for await (const part of plainBytes(createReadStream(await fileIn(directory, name)))) {
    hash.update(part)
    yield part
  }
  if (`sha256:${hash.digest('hex')}` !== digest) throw mismatch(name)
}

const mismatch = (digest: string): ImageError =>
  new ImageError('InvalidArchive', `the content of ${digest} does not match its digest`)

const severalImages = (count: number): ImageError =>
  new ImageError('Unsupported', `the archive has ${count} images; save the one that is meant alone`)

const missing = (name: string) => (): never => {
  throw new ImageError('InvalidArchive', `the archive has no ${name}`)
}

async function readJson(directory: string, name: string): Promise<unknown> {
  return jsonOf((await readSmall(directory, name)).toString('utf8'), name)
}

function jsonOf(text: string, name: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new ImageError('InvalidArchive', `${name} is no JSON`, { cause: error })
  }
}

function parsed<T>(schema: z.ZodType<T>, content: unknown, name: string): T {
  const read = schema.safeParse(content)
  if (read.success) return read.data
  throw new ImageError('InvalidArchive', `${name} is not of the form it should have`, { cause: read.error })
}

import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
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

const descriptor = z.object({
  digest: z.string(),
  mediaType: z.string().optional(),
  platform: z.object({ architecture: z.string(), os: z.string() }).optional(),
})
const indexSchema = z.object({ manifests: z.array(descriptor) })
const manifestSchema = z.object({ config: descriptor, layers: z.array(descriptor) })
const dockerSchema = z.array(z.object({ Config: z.string(), Layers: z.array(z.string()) })).min(1)
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
})

const maxJsonBytes = 4 * 1024 * 1024
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }
const hostArchitecture = architectures[process.arch] ?? process.arch

/** Reads an OCI image layout, or what `docker save` unpacks to. Every blob is checked against its digest. */
export async function readLayout(directory: string): Promise<LayeredImage> {
  if (existsSync(join(directory, 'index.json'))) return fromIndex(directory)
  if (existsSync(join(directory, 'manifest.json'))) return fromDocker(directory)
  throw new ImageError('InvalidArchive', 'there is neither an index.json nor a manifest.json: no image of a known form')
}

async function fromIndex(directory: string): Promise<LayeredImage> {
  let { manifests } = parsed(indexSchema, await readJson(join(directory, 'index.json')), 'index.json')
  for (let depth = 0; depth < 4; depth++) {
    const chosen =
      manifests.find(({ platform }) => platform?.os === 'linux' && platform.architecture === hostArchitecture) ??
      manifests.find(({ platform }) => platform === undefined)
    if (!chosen) throw new ImageError('Unsupported', `the image has no manifest for linux/${hostArchitecture}`)
    const content = await readJsonBlob(directory, chosen.digest)
    const nested = indexSchema.safeParse(content)
    if (nested.success) {
      manifests = nested.data.manifests
      continue
    }
    const manifest = parsed(manifestSchema, content, 'the manifest')
    const config = imageConfig(await readJsonBlob(directory, manifest.config.digest))
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
  const [image] = parsed(dockerSchema, await readJson(join(directory, 'manifest.json')), 'manifest.json')
  if (!image) throw new ImageError('InvalidArchive', 'manifest.json names no image')
  const fileOf = (name: string): string => {
    if (!/^[\w.-]+(\/[\w.-]+)*$/.test(name) || name.split('/').includes('..'))
      throw new ImageError('Unsafe', `manifest.json names a file outside of the image: ${name}`)
    return join(directory, name)
  }
  const text = await readFile(fileOf(image.Config)).catch(missing(image.Config))
  const config = imageConfig(jsonOf(text.toString('utf8'), image.Config))
  const layers = image.Layers.map((name) => () => plainBytes(createReadStream(fileOf(name))))
  return { digest: `sha256:${createHash('sha256').update(text).digest('hex')}`, config, layers }
}

function imageConfig(content: unknown): ImageConfig {
  const { architecture, os = 'linux', config } = parsed(configSchema, content, 'the configuration')
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
    ...(argv.length > 0 ? { argv } : {}),
    ...(env.length > 0 ? { env: Object.fromEntries(env) } : {}),
    ...(config?.WorkingDir?.startsWith('/') ? { workingDir: config.WorkingDir } : {}),
  }
}

function blobPath(directory: string, digest: string): string {
  const [, hex] = /^sha256:([0-9a-f]{64})$/.exec(digest) ?? []
  if (!hex) throw new ImageError('Unsupported', `the digest "${digest}" is not of sha256`)
  return join(directory, 'blobs', 'sha256', hex)
}

async function readJsonBlob(directory: string, digest: string): Promise<unknown> {
  const content = await readFile(blobPath(directory, digest)).catch(missing(digest))
  if (content.length > maxJsonBytes) throw new ImageError('InvalidArchive', `${digest} is too large to be a manifest`)
  if (`sha256:${createHash('sha256').update(content).digest('hex')}` !== digest) throw mismatch(digest)
  return jsonOf(content.toString('utf8'), digest)
}

/** The layer, unpacked; a content that does not match its digest is refused at its end, before the image is used. */
async function* checkedBlob(directory: string, digest: string): AsyncGenerator<Uint8Array> {
  const path = blobPath(directory, digest)
  if (!existsSync(path)) missing(digest)()
  const hash = createHash('sha256')
  for await (const part of createReadStream(path)) hash.update(part as Buffer)
  if (`sha256:${hash.digest('hex')}` !== digest) throw mismatch(digest)
  yield* plainBytes(createReadStream(path))
}

const mismatch = (digest: string): ImageError =>
  new ImageError('InvalidArchive', `the content of ${digest} does not match its digest`)

const missing = (name: string) => (): never => {
  throw new ImageError('InvalidArchive', `the archive has no ${name}`)
}

async function readJson(path: string): Promise<unknown> {
  return jsonOf(await readFile(path, 'utf8'), path)
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

import { execFileSync } from 'node:child_process'
import { createHash, type Hash } from 'node:crypto'
import {
  copyFileSync,
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { rename } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'

export interface ImageSpec {
  /** With registry and tag, as containerd names it. */
  readonly reference: string
  readonly architecture: 'amd64' | 'arm64'
  /** Directories or tar files, the lowest first. */
  readonly layers: readonly string[]
  readonly entrypoint: readonly string[]
  readonly cmd?: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly user: string
  readonly workingDir: string
  readonly labels: Readonly<Record<string, string>>
  /** Directory that keeps compressed layers, so that a second build is quick. */
  readonly layerCache?: string
  /** Every file and the image are of this time, in seconds, so that the same content has the same digest. */
  readonly epochSeconds: number
}

export interface WrittenImage {
  readonly digest: string
  /** Of the layers as they are pulled. */
  readonly compressedBytes: number
  readonly layerBytes: readonly number[]
}

interface Descriptor {
  mediaType: string
  digest: string
  size: number
}

/**
 * Writes an OCI image layout as one tar, which containerd, podman, skopeo, kind and k3d read. The same content gives the
 * same digest: names are sorted, owners are root, times are the given one, and gzip keeps none.
 */
export async function writeOciArchive(spec: ImageSpec, archive: string): Promise<WrittenImage> {
  const directory = mkdtempSync(join(tmpdir(), 'corral-image-'))
  const blobs = join(directory, 'blobs/sha256')
  mkdirSync(blobs, { recursive: true })
  const put = (content: object, mediaType: string): Descriptor => {
    const bytes = Buffer.from(JSON.stringify(content))
    const hex = createHash('sha256').update(bytes).digest('hex')
    writeFileSync(join(blobs, hex), bytes)
    return { mediaType, digest: `sha256:${hex}`, size: bytes.length }
  }
  try {
    const layers: Descriptor[] = []
    const diffIds: string[] = []
    for (const layer of spec.layers) {
      const tar = statSync(layer).isDirectory() ? packed(layer, join(directory, 'layer.tar'), spec.epochSeconds) : layer
      const { diffId, descriptor } = await compress(tar, blobs, spec.layerCache)
      layers.push(descriptor)
      diffIds.push(diffId)
    }
    rmSync(join(directory, 'layer.tar'), { force: true })
    const created = new Date(spec.epochSeconds * 1000).toISOString()
    const platform = { architecture: spec.architecture, os: 'linux' }
    const config = put(
      {
        ...platform,
        created,
        config: {
          User: spec.user,
          Env: Object.entries(spec.env).map(([name, value]) => `${name}=${value}`),
          Entrypoint: spec.entrypoint,
          ...(spec.cmd ? { Cmd: spec.cmd } : {}),
          WorkingDir: spec.workingDir,
          Labels: spec.labels,
        },
        rootfs: { type: 'layers', diff_ids: diffIds },
        history: diffIds.map(() => ({ created, created_by: 'npm run images' })),
      },
      'application/vnd.oci.image.config.v1+json',
    )
    const mediaType = 'application/vnd.oci.image.manifest.v1+json'
    const manifest = put({ schemaVersion: 2, mediaType, config, layers }, mediaType)
    const annotations = {
      'io.containerd.image.name': spec.reference,
      'org.opencontainers.image.ref.name': spec.reference.split(':').at(-1),
    }
    const index = {
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.index.v1+json',
      manifests: [{ ...manifest, platform, annotations }],
    }
    writeFileSync(join(directory, 'index.json'), JSON.stringify(index))
    writeFileSync(join(directory, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
    pack(directory, archive, spec.epochSeconds, ['oci-layout', 'index.json', 'blobs'])
    const layerBytes = layers.map(({ size }) => size)
    return {
      digest: manifest.digest,
      layerBytes,
      compressedBytes: layerBytes.reduce((sum, size) => sum + size, 0),
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

function packed(directory: string, to: string, epochSeconds: number): string {
  pack(directory, to, epochSeconds, ['.'])
  return to
}

function pack(from: string, to: string, epochSeconds: number, names: readonly string[]): void {
  const fixed = ['--sort=name', `--mtime=@${epochSeconds}`, '--numeric-owner', '--owner=0', '--group=0', '--format=gnu']
  execFileSync('tar', [...fixed, '-C', from, '-cf', to, ...names], { timeout: 600_000 })
}

/** Node writes no time and no name into a gzip header: the bytes depend on the content alone. */
async function compress(
  tar: string,
  blobs: string,
  cache: string | undefined,
): Promise<{ diffId: string; descriptor: Descriptor }> {
  const known = cache && (await keptLayer(tar, blobs, cache))
  if (known) return known
  const plain = createHash('sha256')
  const squeezed = createHash('sha256')
  const temporary = join(blobs, 'layer')
  await pipeline(
    createReadStream(tar, { highWaterMark: 1024 * 1024 }),
    counted(plain),
    createGzip({ level: 6 }),
    counted(squeezed),
    createWriteStream(temporary),
  )
  const hex = squeezed.digest('hex')
  const size = statSync(temporary).size
  await rename(temporary, join(blobs, hex))
  const diffId = plain.digest('hex')
  if (cache) {
    mkdirSync(cache, { recursive: true })
    copyFileSync(join(blobs, hex), join(cache, `${diffId}.${process.pid}`))
    await rename(join(cache, `${diffId}.${process.pid}`), join(cache, `${diffId}.gz`))
  }
  return layerOf(diffId, hex, size)
}

/** A layer that was compressed before, found by what is in it. */
async function keptLayer(tar: string, blobs: string, cache: string): Promise<ReturnType<typeof layerOf> | undefined> {
  const diffId = await digestOf(tar)
  const kept = join(cache, `${diffId}.gz`)
  if (!existsSync(kept)) return undefined
  const hex = await digestOf(kept)
  copyFileSync(kept, join(blobs, hex))
  return layerOf(diffId, hex, statSync(kept).size)
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file, { highWaterMark: 1024 * 1024 }), hash)
  return hash.digest('hex')
}

function layerOf(diffId: string, hex: string, size: number): { diffId: string; descriptor: Descriptor } {
  const mediaType = 'application/vnd.oci.image.layer.v1.tar+gzip'
  return { diffId: `sha256:${diffId}`, descriptor: { mediaType, digest: `sha256:${hex}`, size } }
}

function counted(hash: Hash): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk)
      done(null, chunk)
    },
  })
}

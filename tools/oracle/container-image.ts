import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, copyFileSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** What goes into an image of one layer. */
export interface ImageContents {
  /** With registry and tag, as containerd names it. */
  readonly reference: string
  readonly entrypoint: readonly string[]
  /** Path in the image → file here, copied with its mode. */
  readonly files: ReadonlyMap<string, string>
  /** Path in the image → target. */
  readonly links?: ReadonlyMap<string, string>
}

/** Writes an image as the archive that `docker save` makes and `ctr images import` reads. Answers its path. */
export async function writeImage(directory: string, contents: ImageContents): Promise<string> {
  const root = join(directory, 'root')
  for (const [inside, file] of contents.files) {
    mkdirSync(dirname(join(root, inside)), { recursive: true })
    copyFileSync(file, join(root, inside))
  }
  for (const [inside, target] of contents.links ?? []) {
    mkdirSync(dirname(join(root, inside)), { recursive: true })
    symlinkSync(target, join(root, inside))
  }
  for (const [inside, mode] of [
    ['tmp', 0o1777],
    ['proc', 0o755],
    ['sys', 0o755],
    ['dev', 0o755],
    ['etc', 0o755],
  ] as const) {
    mkdirSync(join(root, inside), { recursive: true })
    chmodSync(join(root, inside), mode)
  }
  chmodSync(root, 0o755)
  const pack = (from: string, to: string, ...names: string[]): Promise<unknown> =>
    run('tar', ['--numeric-owner', '--owner=0', '--group=0', '-C', from, '-cf', to, ...names], { timeout: 120_000 })
  await pack(root, join(directory, 'layer.tar'), '.')
  const digest = createHash('sha256')
    .update(readFileSync(join(directory, 'layer.tar')))
    .digest('hex')
  const config = {
    architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
    os: 'linux',
    config: { Entrypoint: contents.entrypoint, Env: ['PATH=/usr/local/bin:/usr/bin:/bin'], WorkingDir: '/tmp' },
    rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
  }
  writeFileSync(join(directory, 'config.json'), JSON.stringify(config))
  const manifest = [{ Config: 'config.json', RepoTags: [contents.reference], Layers: ['layer.tar'] }]
  writeFileSync(join(directory, 'manifest.json'), JSON.stringify(manifest))
  const archive = join(directory, 'image.tar')
  await pack(directory, archive, 'manifest.json', 'config.json', 'layer.tar')
  return archive
}

/** A dynamically linked program and every library it loads, at the paths they have here. */
export async function programFiles(inside: string, program: string): Promise<Map<string, string>> {
  const { stdout } = await run('ldd', [program], { timeout: 10_000 })
  const libraries = [...stdout.matchAll(/(\/\S+)\s+\(0x/g)].map(([, path = '']) => path)
  return new Map([[inside, realpathSync(program)], ...libraries.map((path) => [path, realpathSync(path)] as const)])
}

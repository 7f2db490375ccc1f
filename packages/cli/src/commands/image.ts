import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { ImageDirectory, ImportedImage } from '@corral/node'
import type { Command } from 'commander'
import { CliError } from '../cli-error.js'
import { table } from '../output/table.js'
import { terminalText } from '../output/terminal-text.js'
import { dataDirectoryOf, letSandboxesRead, prepareDataDirectory } from '../platform/data-directory.js'
import { examples, print, say } from './common.js'
import { megabytes } from './env-build.js'

interface ImageOptions {
  dataDir?: string
  json?: boolean
  replace?: boolean
  debian?: string[]
  suite?: string
}

/** What a sandbox of a task needs of its root: without them the daemon does not run, or nothing is checked out. */
const forTasks = ['git', 'ca-certificates', 'libstdc++6', 'bash']

export function addImageCommand(program: Command): void {
  const image = program
    .command('image')
    .summary('root file systems for sandboxes in place of the tools of this machine')
    .description(
      'An image that was imported is what `image` of a pod or of an environment file names. Nothing is pulled: bring it as an\nOCI layout, as an archive of one (`docker save`), or as a tar archive of a root file system.',
    )
  const common = (command: Command): Command =>
    command.option('--data-dir <dir>', 'data directory of the platform').option('--json', 'print JSON')

  common(image.command('import').argument('<name>', 'such as debian:12').argument('<path>', 'archive or OCI layout'))
    .summary('make an image from an archive')
    .option('--replace', 'take the place of one that is there')
    .addHelpText('after', examples('corral image import debian:12 rootfs.tar.gz', 'corral image import tools ./layout'))
    .hook('preAction', letSandboxesRead)
    .action(async (name: string, path: string, options: ImageOptions) => {
      const images = await imagesOf(options)
      told(await images.import(name, resolve(path), { replace: options.replace === true }).catch(wrongUsage), options)
    })
  common(image.command('list'))
    .summary('images that were imported')
    .action(async (options: ImageOptions) => {
      const images = await (await imagesOf(options)).list()
      print({ images }, options, () =>
        images.length === 0
          ? 'no images'
          : table(
              ['NAME', 'DIGEST', 'SIZE', 'FILES', 'IMPORTED'],
              images.map(({ name, digest, bytes, files, importedAt }) => [
                name,
                digest.slice(0, 19),
                megabytes(bytes),
                String(files),
                importedAt,
              ]),
            ),
      )
    })
  common(image.command('rm').argument('<name>'))
    .summary('remove an image')
    .action(async (name: string, options: ImageOptions) => {
      if (!(await (await imagesOf(options)).remove(name)))
        throw new CliError(`there is no image "${name}"`, { hint: '`corral image list` has their names.' })
      print({ name, removed: true }, options, () => `removed "${name}"`)
    })
  common(image.command('build').argument('<name>'))
    .summary('make an image of Debian with some packages, with mmdebstrap')
    .requiredOption('--debian <packages...>', 'what it has beside a minimal Debian and what sandboxes need')
    .option('--suite <name>', 'release of Debian; that of this machine where it is one, else stable')
    .option('--replace', 'take the place of one that is there')
    .addHelpText('after', examples('corral image build tools:1 --debian python3 build-essential'))
    .hook('preAction', letSandboxesRead)
    .action(build)
}

async function build(name: string, options: ImageOptions): Promise<void> {
  if (spawnSync('mmdebstrap', ['--version'], { stdio: 'ignore' }).error)
    throw new CliError('there is no mmdebstrap on this machine', {
      hint: 'Install it (apt-get install mmdebstrap), or import an archive: corral image import NAME FILE',
    })
  const wrong = (options.debian ?? []).find((each) => !/^[a-z0-9][a-z0-9+.-]*$/.test(each))
  if (wrong !== undefined) throw new CliError(`"${wrong}" is no name of a package`, { exitCode: 2 })
  const images = await imagesOf(options)
  const scratch = mkdtempSync(join(tmpdir(), 'corral-image-'))
  try {
    const archive = join(scratch, 'root.tar')
    const packages = [...new Set([...forTasks, ...(options.debian ?? [])])]
    const words = ['--variant=minbase', `--include=${packages.join(',')}`, options.suite ?? suiteHere(), archive]
    await run('mmdebstrap', words)
    told(await images.import(name, archive, { replace: options.replace === true }).catch(wrongUsage), options)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

function suiteHere(): string {
  try {
    const text = readFileSync('/etc/os-release', 'utf8')
    return (/^ID=debian$/m.test(text) && /^VERSION_CODENAME=(\w+)$/m.exec(text)?.[1]) || 'stable'
  } catch {
    // No such file: no Debian.
    return 'stable'
  }
}

function run(program: string, args: readonly string[]): Promise<void> {
  return new Promise((done, fail) => {
    const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'pipe'] })
    let last = ''
    child.stderr.on('data', (chunk: Buffer) => {
      // Minutes without a word look like a hang.
      process.stderr.write(chunk)
      last = `${last}${chunk.toString('utf8')}`.slice(-2_000)
    })
    child.on('error', fail)
    child.on('close', (code) =>
      code === 0
        ? done()
        : fail(
            new CliError(`${program} ended with exit code ${code}: ${lastLines(last)}`, {
              hint: 'Nothing was imported. It fetches from the mirrors that apt of this machine is set up for.',
            }),
          ),
    )
  })
}

const lastLines = (text: string): string => terminalText(text.trim().split('\n').slice(-5).join('\n'), false)

function told(image: ImportedImage, options: ImageOptions): void {
  const { name, digest, bytes, files, stripped, lacks = [] } = image
  const { setuid, devices } = stripped
  if (setuid + devices > 0) say(`left out: ${setuid} set-id bits, ${devices} devices and pipes`)
  if (lacks.length > 0) say(`for pods only: tasks need ${lacks.join(', ')} in an image, and this has none`)
  print(image, options, () => `${name}: ${files} files, ${megabytes(bytes)}, ${digest.slice(0, 19)}`)
}

function wrongUsage(error: unknown): never {
  const { code, message } = error as { code?: string; message: string }
  const hints: Readonly<Record<string, string>> = {
    AlreadyExists: 'Replace it with --replace, or choose another tag.',
    InvalidName: 'Such as debian:12 or team/tools:1.',
    Unsafe: 'Nothing was imported. An archive with such entries was not made by an honest tool.',
    TooLarge: 'Nothing was imported.',
    DiskFull: 'Nothing was imported. Free space in the data directory, or name another one with --data-dir.',
    Unsupported: 'Nothing was imported.',
    InvalidArchive:
      'Nothing was imported. `docker save`, `podman save` and `tar` of a root file system make what it takes.',
  }
  if ((error as Error).name !== 'ImageError') throw error
  const hint = hints[code ?? '']
  // Names in it come from the archive.
  throw new CliError(terminalText(message, false), {
    cause: error,
    ...(hint ? { hint } : {}),
    ...(code === 'InvalidName' ? { exitCode: 2 } : {}),
  })
}

/** Loaded here: with it would come half the platform, which no other command should wait for. */
async function imagesOf(options: ImageOptions): Promise<ImageDirectory> {
  const { ImageDirectory: Images } = await import('@corral/node')
  const directory = dataDirectoryOf(options)
  prepareDataDirectory(directory)
  return new Images(directory.images)
}

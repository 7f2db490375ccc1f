// The packages people install, packed as npm would publish them and tried where only their declared dependencies exist.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { checkPackage, createPackageFromTarballData, type Problem } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'

export interface PublicPackage {
  name: string
  version: string
  folder: string
  private?: boolean
  exports: Record<string, unknown>
  dependencies?: Record<string, string>
}

export interface PackedPackage extends PublicPackage {
  tarball: string
  sizeBytes: number
  files: number
}

/** Manifests of the packages that are not private. */
export function publicPackages(root: string): PublicPackage[] {
  return readdirSync(join(root, 'packages'))
    .map((folder) => ({
      ...(JSON.parse(readFileSync(join(root, 'packages', folder, 'package.json'), 'utf8')) as PublicPackage),
      folder,
    }))
    .filter((manifest) => manifest.private !== true)
}

export function packPublicPackages(root: string, target: string): PackedPackage[] {
  return publicPackages(root).map((manifest) => {
    const output = run('npm', ['pack', '--json', '--pack-destination', target], join(root, 'packages', manifest.folder))
    const [{ filename, size, entryCount }] = JSON.parse(output) as [
      { filename: string; size: number; entryCount: number },
    ]
    return { ...manifest, tarball: join(target, filename), sizeBytes: size, files: entryCount }
  })
}

/**
 * Unpacks the tarballs into a project of its own, in which every package finds the dependencies it declares and no others, and
 * imports each, and requires each as CommonJS does. Throws with the package and the reason where one cannot be imported or leans on a private package.
 */
export function checkPackedPackages(root: string, packed: readonly PackedPackage[]): void {
  const project = mkdtempSync(join(tmpdir(), 'corral-packed-'))
  try {
    for (const { name, tarball } of packed) {
      const place = join(project, 'node_modules', name)
      mkdirSync(place, { recursive: true })
      run('tar', ['-xzf', tarball, '--strip-components=1', '-C', place], project)
    }
    for (const { name, dependencies = {} } of packed) {
      const place = join(project, 'node_modules', name)
      for (const dependency of Object.keys(dependencies)) {
        if (existsSync(join(project, 'node_modules', dependency))) continue
        if (dependency.startsWith('@corral/')) throw new Error(`${name} depends on ${dependency}, which is private`)
        const link = join(place, 'node_modules', dependency)
        mkdirSync(dirname(link), { recursive: true })
        symlinkSync(join(root, 'node_modules', dependency), link)
      }
    }
    const entries = packed.flatMap(({ name, exports }) => Object.keys(exports).map((entry) => join(name, entry)))
    for (const name of entries.filter((entry) => !entry.endsWith('.json'))) {
      const check = `if (Object.keys(all).length === 0) throw new Error('it exports nothing')`
      for (const [type, load] of [
        ['module', `const all = await import(${JSON.stringify(name)})`],
        ['commonjs', `const all = require(${JSON.stringify(name)})`],
      ]) {
        try {
          run(process.execPath, ['--no-warnings', `--input-type=${type}`, '--eval', `${load}; ${check}`], project)
        } catch (error) {
          throw new Error(`${name} does not work from ${type} once it is installed: ${(error as Error).message}`)
        }
      }
    }
  } finally {
    rmSync(project, { recursive: true, force: true })
  }
}

/**
 * What publint and Are The Types Wrong say about the tarballs. CommonJS gets ES modules through `require` of Node 20.19 and newer,
 * which the second one counts as a mistake for older ones.
 */
export async function lintPackedPackages(packed: readonly PackedPackage[]): Promise<string[]> {
  const problems: string[] = []
  for (const { name, tarball } of packed) {
    const data = readFileSync(tarball)
    const bytes = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength) as ArrayBuffer
    const { messages, pkg } = await publint({ pack: { tarball: bytes }, strict: true })
    for (const message of messages) problems.push(`${name}: ${formatMessage(message, pkg) ?? message.code}`)
    const analysis = await checkPackage(createPackageFromTarballData(new Uint8Array(bytes)))
    if (!analysis.types) problems.push(`${name}: it has no types`)
    else
      for (const problem of analysis.problems)
        if (!isOldNodeOnly(problem)) problems.push(`${name}: ${JSON.stringify(problem)}`)
  }
  return problems
}

function isOldNodeOnly(problem: Problem): boolean {
  if (problem.kind === 'NoResolution') return problem.resolutionKind === 'node10'
  return problem.kind === 'CJSResolvesToESM'
}

function run(program: string, args: string[], cwd: string): string {
  const result = spawnSync(program, args, { cwd, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  if (result.status !== 0) throw new Error(`${program} ${args[0]} failed: ${result.stderr || result.stdout}`)
  return result.stdout
}

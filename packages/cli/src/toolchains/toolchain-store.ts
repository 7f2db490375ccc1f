import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ToolName, toolNames } from '@corral/protocol'

/** A toolchain that sandboxes see, below `<data>/toolchains/TOOL/VERSION`. */
export interface StoredToolchain {
  tool: ToolName
  version: string
  /** The directory or package it came from. */
  source: string
}

const recordName = 'toolchain.json'

export function listToolchains(directory: string): StoredToolchain[] {
  return toolNames.flatMap((tool) =>
    namesIn(join(directory, tool)).flatMap((version) => {
      const record = readRecord(join(directory, tool, version))
      return record ? [{ tool, version, source: record.source }] : []
    }),
  )
}

/**
 * Puts a toolchain in place at once: `make` fills a directory beside it, which takes its name when it is complete. Sandboxes
 * that run see it from then on. One of the same version is replaced.
 */
export async function storeToolchain(
  directory: string,
  { tool, version, source }: StoredToolchain,
  make: (into: string) => Promise<void>,
): Promise<string> {
  sweepParts(directory)
  const target = join(directory, tool, version)
  const half = join(directory, `.${tool}-${version}.${process.pid}.part`)
  mkdirSync(half, { recursive: true, mode: 0o755 })
  try {
    await make(half)
    writeFileSync(join(half, recordName), `${JSON.stringify({ source })}\n`, { mode: 0o644 })
    mkdirSync(join(directory, tool), { recursive: true, mode: 0o755 })
    moveAway(directory, target)
    renameSync(half, target)
  } finally {
    rmSync(half, { recursive: true, force: true })
    sweepParts(directory)
  }
  return target
}

/** Whether it was there. */
export function removeToolchain(directory: string, tool: ToolName, version: string): boolean {
  const isThere = moveAway(directory, join(directory, tool, version))
  sweepParts(directory)
  return isThere
}

/** Under another name first: a sandbox finds the whole of it or nothing. */
function moveAway(directory: string, target: string): boolean {
  if (!existsSync(target)) return false
  renameSync(target, join(directory, `.gone-${Date.now()}.${process.pid}.part`))
  return true
}

/** What commands that were ended have left, and what was moved away. */
function sweepParts(directory: string): void {
  for (const name of namesIn(directory)) {
    const [, pid] = /^\..*\.(\d+)\.part$/.exec(name) ?? []
    if (pid === undefined) continue
    const isOwn = name.startsWith('.gone-') && Number(pid) === process.pid
    if (isOwn || !isAlive(Number(pid))) rmSync(join(directory, name), { recursive: true, force: true })
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function namesIn(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory).sort() : []
}

function readRecord(directory: string): { source: string } | undefined {
  try {
    return JSON.parse(readFileSync(join(directory, recordName), 'utf8')) as { source: string }
  } catch {
    // No toolchain of ours.
    return undefined
  }
}

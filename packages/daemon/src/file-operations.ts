import { constants } from 'node:fs'
import { chmod, copyFile, cp, link, lstat, mkdir, rename, rm, unlink } from 'node:fs/promises'
import { CorralError, type FileOperation } from '@corral/protocol'
import { makeDirectory } from './make-directory.js'

/** Carries out one change of names. A move or copy without `overwrite` never replaces what is there. */
export async function fileOperation(operation: FileOperation): Promise<Response> {
  switch (operation.operation) {
    case 'mkdir': {
      await (operation.recursive ? makeDirectory(operation.path) : mkdir(operation.path))
      if (operation.mode) await chmod(operation.path, Number.parseInt(operation.mode, 8))
      break
    }
    case 'move':
      await move(operation.from, operation.to, operation.overwrite ?? false)
      break
    case 'copy':
      await copy(operation.from, operation.to, operation.recursive ?? false, operation.overwrite ?? false)
      break
  }
  return new Response(null, { status: 204 })
}

async function move(from: string, to: string, overwrite: boolean): Promise<void> {
  const source = await lstat(from)
  if (!overwrite && !source.isDirectory() && (await moveByLink(from, to))) return
  if (!overwrite) await requireFree(to)
  try {
    await rename(from, to)
  } catch (error) {
    if (!isErrno(error, 'EXDEV')) throw error
    // Another file system: copied as a whole, then the old one goes.
    await cp(from, to, { recursive: true, force: overwrite, errorOnExist: !overwrite, preserveTimestamps: true })
    await rm(from, { recursive: true })
  }
}

/** A second name that is refused where the first is taken, then the old name goes: no moment in which `to` is replaced. */
async function moveByLink(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to)
  } catch (error) {
    if (isErrno(error, 'EEXIST')) throw taken(to)
    // Links are not to be had here: the caller moves in the plain way.
    if (isErrno(error, 'EPERM') || isErrno(error, 'EXDEV') || isErrno(error, 'EMLINK')) return false
    throw error
  }
  await unlink(from)
  return true
}

async function copy(from: string, to: string, recursive: boolean, overwrite: boolean): Promise<void> {
  const source = await lstat(from)
  if (source.isDirectory() && !recursive) {
    throw new CorralError('IsADirectory', `"${from}" is a directory; copy it with recursive`)
  }
  try {
    if (source.isFile()) await copyFile(from, to, overwrite ? 0 : constants.COPYFILE_EXCL)
    else {
      if (!overwrite) await requireFree(to)
      await cp(from, to, { recursive, force: overwrite, errorOnExist: !overwrite, verbatimSymlinks: true })
    }
  } catch (error) {
    if (isErrno(error, 'EEXIST')) throw taken(to)
    if (specialFiles.some((code) => isErrno(error, code)))
      throw new CorralError('Invalid', `"${from}" is or has in it a pipe, socket or device, which cannot be copied`)
    if (isErrno(error, 'ERR_FS_CP_EINVAL')) throw new CorralError('Invalid', `"${to}" lies inside "${from}"`)
    throw error
  }
}

const specialFiles = ['ERR_FS_CP_FIFO_PIPE', 'ERR_FS_CP_SOCKET', 'ERR_FS_CP_UNKNOWN']

async function requireFree(path: string): Promise<void> {
  if (await lstat(path).catch(() => undefined)) throw taken(path)
}

function taken(path: string): CorralError {
  return new CorralError('AlreadyExists', `"${path}" exists; move or copy with overwrite to replace it`)
}

function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}

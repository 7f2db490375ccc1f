import { openSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nulTerminated } from '../../cradle/protocol/frames.js'
import type { CradleConfig } from '../../cradle/protocol/messages.js'
import type { CellStrategy, LaunchInput } from '../../cradle/server/cell-strategy.js'
import { IsolationError } from '../../isolation/isolation-error.js'
import { readHostLayout } from './host-layout.js'
import { imageLayout } from './image-layout.js'
import { bwrapOptions, supervisorTarget } from './profile.js'
import { seccompProgram } from './seccomp.js'

/** What `bubblewrapIsolation` tells the cells in the cradle's configuration. */
export interface BubblewrapOptions {
  bwrapPath: string
  /** False on hosts whose kernel refuses `--disable-userns`; the seccomp filter refuses new namespaces there. */
  disableUserns: boolean
}

/** Where the interpreter of the Node supervisor lies in a cell. */
const nodeInCell = '/run/corral/node'

/**
 * The first process of a cell with the Node supervisor: a shell, which waits for whatever becomes its child. bwrap's own
 * first process is not waited for by the bwrap that started it: it would stay as a dead process where that of the machine
 * reaps nothing. The second command keeps the shell from becoming the first one.
 */
const firstProcess = ['/bin/sh', '-c', '"$@"; exit "$?"', 'corral-first']

/** Cells in namespaces of their own behind bwrap. Reads the host's layout and writes the seccomp filter once. */
export function bubblewrapCells(config: CradleConfig): CellStrategy {
  // Written by `bubblewrapIsolation` of the same version: a cradle of another version is never handed a configuration.
  const { bwrapPath, disableUserns } = config.tierOptions as unknown as BubblewrapOptions
  const host = readHostLayout()
  const isRoot = process.getuid?.() === 0
  const seccompPath = join(config.dataDir, 'cradle', 'seccomp.bpf')
  writeFileSync(seccompPath, seccompProgram(process.arch === 'arm64' ? 'arm64' : 'x64'))
  const profile = (input: LaunchInput, source: string): string[] =>
    bwrapOptions({
      ...input,
      host,
      ...(input.plan.root === undefined ? {} : { image: imageLayout(input.plan) }),
      supervisor: { source, target: supervisorTarget },
      disableUserns,
      unshareNet: false,
    })

  return {
    hasOwnNetwork: true,
    hasMounts: true,
    checkPod({ hostUid }) {
      if (isRoot && hostUid === 0)
        throw new IsolationError('Forbidden', 'a pod must not run as host uid 0: it could write to /proc/sys')
    },
    planInside: (plan) => plan,
    nativeRecords: (input, { path }) => [
      ...profile(input, path).map((option) => `b${option}`),
      `f${seccompPath}`,
      `e${bwrapPath}`,
      `a${supervisorTarget}`,
    ],
    nodeCommand(input, { nodePath, script }, firstFd) {
      const words = [...profile(input, script), '--ro-bind', nodePath, nodeInCell]
      const seccomp = openSync(seccompPath, 'r')
      const options = openUnlinked(join(input.socketDirectory, `${input.socketName}.args`), words)
      const wrap = [bwrapPath, '--args', String(firstFd + 1), '--seccomp', String(firstFd), '--']
      return { argv: [...wrap, ...firstProcess, nodeInCell, supervisorTarget], files: [seccomp, options] }
    },
  }
}

/** Words for `bwrap --args` behind a descriptor: as arguments the host's process list would show them to every user. */
function openUnlinked(path: string, words: readonly string[]): number {
  writeFileSync(path, nulTerminated(words, 'what a container is mounted from and at'), { mode: 0o600 })
  const fd = openSync(path, 'r')
  rmSync(path)
  return fd
}

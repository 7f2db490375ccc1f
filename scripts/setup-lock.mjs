// One set-up of a clone at a time: two that install or build the same files at once would each break what the other makes.
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'

const lookMs = 100
/** A lock is empty for as long as its owner needs to write its id into it. */
const emptyMs = 10_000

/** Runs `work` while holding the lock file; waits for a process that holds it, and takes over the lock of one that ended. */
export async function withSetupLock(path, { work, onWait }) {
  let isTold = false
  while (!take(path)) {
    const holder = holderOf(path)
    if (holder === undefined) continue
    if (!isTold) onWait(holder)
    isTold = true
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lookMs)
  }
  const release = () => rmSync(path, { force: true })
  process.once('exit', release) // A set-up that fails ends the process.
  try {
    return await work()
  } finally {
    process.off('exit', release)
    release()
  }
}

function take(path) {
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx' })
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  }
}

/** Who holds the lock; `undefined` where it is free, as it is when its owner was killed. */
function holderOf(path) {
  try {
    const holder = Number(readFileSync(path, 'utf8'))
    if (holder > 0 ? isAlive(holder) : Date.now() - statSync(path).mtimeMs < emptyMs) return holder
    rmSync(path, { force: true })
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
  }
  return undefined
}

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

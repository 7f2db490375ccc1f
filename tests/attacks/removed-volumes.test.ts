import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TemporaryDirectory, temporaryDirectory } from '@corral/testing'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { claimDirectories } from '../../packages/node/src/volumes/claim-directories.js'

let scratch: TemporaryDirectory
let host: string
beforeEach(() => {
  scratch = temporaryDirectory()
  host = join(scratch.path, 'host')
  mkdirSync(host)
  for (let number = 0; number < 50; number++) writeFileSync(join(host, `precious-${number}`), 'of the host')
})
afterEach(() => scratch[Symbol.asyncDispose]())

/** Puts a link to files of the host in the place of each directory and takes it back, as fast as it can, for ever. */
const swapping = `
  const { renameSync, symlinkSync, unlinkSync, mkdirSync, writeFileSync } = require('node:fs')
  const [volume, host, directories] = process.argv.slice(1)
  const quietly = (act) => { try { act() } catch {} }
  console.log('up')
  for (;;) for (let n = 0; n < Number(directories); n++) {
    const name = volume + '/d' + n
    quietly(() => renameSync(name, name + '.away'))
    quietly(() => symlinkSync(host, name))
    quietly(() => unlinkSync(name))
    quietly(() => renameSync(name + '.away', name))
  }`

async function whileSwapping(volume: string, directories: number, act: () => Promise<void>): Promise<void> {
  const pod = spawn(process.execPath, ['-e', swapping, volume, host, String(directories)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(pod.stdout, 'data')
  try {
    await act()
  } finally {
    pod.kill('SIGKILL')
    await once(pod, 'exit')
  }
}

function fill(volume: string, directories: number): void {
  for (let number = 0; number < directories; number++) {
    mkdirSync(join(volume, `d${number}`), { recursive: true })
    for (let file = 0; file < 20; file++) writeFileSync(join(volume, `d${number}`, `f${file}`), '')
  }
}

it('a volume that goes while its pod still exchanges directories for links takes nothing of the host with it', async () => {
  const claims = claimDirectories(scratch.path)
  for (let round = 0; round < 1; round++) {
    const volume = await claims.claim(`c${round}`, process.getuid?.() ?? 0)
    fill(volume, 4)
    // What it puts there while it is removed may keep the directory; it goes when the claim is looked at again.
    await whileSwapping(volume, 4, () => claims.remove(`c${round}`).catch(() => undefined))
    expect(readdirSync(host), `round ${round}`).toHaveLength(50)
    await claims.remove(`c${round}`)
    expect(existsSync(volume)).toBe(false)
  }
})

it.skipIf(process.getuid?.() !== 0)(
  'a volume that gets another owner meanwhile gives nothing of the host away (needs root)',
  async () => {
    const claims = claimDirectories(scratch.path)
    const volume = await claims.claim('c', 300_001)
    fill(volume, 4)
    writeFileSync(join(volume, 'steady'), '')
    await whileSwapping(volume, 4, async () => {
      for (let uid = 300_002; uid < 300_012; uid++) await claims.claim('c', uid).catch(() => undefined)
    })
    const owners = [host, ...readdirSync(host).map((name) => join(host, name))].map((path) => statSync(path).uid)
    expect(new Set(owners)).toEqual(new Set([0]))
    // The control: what is in the volume belongs to its new owner.
    await claims.claim('c', 300_099)
    expect(statSync(join(volume, 'steady')).uid).toBe(300_099)
  },
)

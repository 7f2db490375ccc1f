import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { CliError } from '../../cli-error.js'
import { readZip, type ZipEntry } from '../unzip.js'
import { digestOf, type FetchToolchain, newestOf } from './fetched-toolchain.js'
import type { RegistryReader } from './registry-reader.js'

const module = 'golang.org/toolchain'

/** Go publishes its toolchains as versions of a module, one for each platform. */
export const fetchGo: FetchToolchain = async (wanted, registry) => {
  const platform = `linux-${process.arch === 'arm64' ? 'arm64' : 'amd64'}`
  const version = /^\d+\.\d+\.\d+$/.test(wanted) ? wanted : await newest(registry, wanted, platform)
  const name = `v0.0.1-go${version}.${platform}`
  return {
    version,
    source: `${module}@${name}`,
    async unpack(into) {
      const { body } = await registry.read('go', (base) => new URL(`${base.href}${module}/@v/${name}.zip`))
      const entries = readZip(body)
      await check(registry, name, entries)
      const prefix = `${module}@${name}/`
      for (const entry of entries) {
        const path = entry.name.slice(prefix.length)
        if (!entry.name.startsWith(prefix) || path.split('/').includes('..')) throw new Error(`${entry.name} leads out`)
        // A module may hold no other module, so that these files are published under another name.
        const file = join(into, path.replace(/(^|\/)_go\.mod$/, '$1go.mod'))
        mkdirSync(dirname(file), { recursive: true, mode: 0o755 })
        writeFileSync(file, entry.read())
        chmodSync(file, /^(bin|pkg\/tool)\//.test(path) ? 0o755 : 0o644)
      }
    },
  }
}

async function newest(registry: RegistryReader, wanted: string, platform: string): Promise<string> {
  const { body } = await registry.read('go', (base) => new URL(`${base.href}${module}/@v/list`))
  const versions = body
    .toString('utf8')
    .split('\n')
    .flatMap((line) => {
      const [, version, on] = /^v0\.0\.1-go([\d.]+)\.([a-z0-9]+-[a-z0-9]+)$/.exec(line.trim()) ?? []
      return version && on === platform ? [version] : []
    })
  const found = newestOf(versions, wanted)
  if (found) return found
  throw new CliError(`the Go module proxy has no toolchain ${wanted || 'at all'} for ${platform}`, {
    hint: 'Name an exact version: corral env tools install go@1.25.3',
  })
}

/** What the checksum database has for it must be what was downloaded, as the go command does it. */
async function check(registry: RegistryReader, name: string, entries: readonly ZipEntry[]): Promise<void> {
  if (registry.env.GOSUMDB === 'off') return
  const { body } = await registry.read(
    'go',
    (base) => new URL(`${base.href}sumdb/sum.golang.org/lookup/${module}@${name}`),
  )
  const promised = body
    .toString('utf8')
    .split('\n')
    .find((line) => line.startsWith(`${module} ${name} h1:`))
    ?.split(' ')[2]
  const found = moduleHash(entries)
  if (promised !== found)
    throw new CliError(`${module}@${name} is not what the checksum database has: ${found} instead of ${promised}`)
}

/** The `h1:` hash of a module. Pure. */
export function moduleHash(entries: readonly ZipEntry[]): string {
  const lines = [...entries]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((entry) => `${digestOf('sha256', entry.read()).toString('hex')}  ${entry.name}\n`)
  return `h1:${digestOf('sha256', Buffer.from(lines.join(''))).toString('base64')}`
}

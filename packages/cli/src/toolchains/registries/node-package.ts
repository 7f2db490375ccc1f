import { spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CliError } from '../../cli-error.js'
import { digestOf, type FetchToolchain, newestOf } from './fetched-toolchain.js'

interface Packument {
  versions?: Record<string, { dist?: { tarball?: string; integrity?: string } }>
}

/** npm has Node itself as a package for each platform. It comes without npm: the one of the machine runs on it. */
export const fetchNode: FetchToolchain = async (wanted, registry) => {
  const name = `node-linux-${process.arch === 'arm64' ? 'arm64' : 'x64'}`
  const accept = 'application/vnd.npm.install-v1+json'
  const { body } = await registry.read('npm', (base) => new URL(`${base.href}${name}`), accept)
  const { versions = {} } = JSON.parse(body.toString('utf8')) as Packument
  const version = newestOf(Object.keys(versions), wanted)
  const { tarball, integrity } = (version && versions[version]?.dist) || {}
  if (!version || !tarball || !integrity)
    throw new CliError(`npm has no ${name} ${wanted}`, {
      hint: 'Name another version: corral env tools install node@22',
    })
  return {
    version,
    source: `${name}@${version}`,
    async unpack(into) {
      const archive = await registry.read('npm', (base) => new URL(tarball, base))
      checkIntegrity(archive.body, integrity, `${name}@${version}`)
      const file = join(into, '.archive.tgz')
      writeFileSync(file, archive.body)
      const { status, stderr } = spawnSync(
        'tar',
        ['-xzf', file, '-C', into, '--strip-components=1', '--no-same-owner', '--no-same-permissions'],
        { encoding: 'utf8' },
      )
      rmSync(file)
      if (status !== 0) throw new CliError(`${name}@${version} could not be unpacked: ${stderr.trim()}`)
      spawnSync('chmod', ['-R', 'u=rwX,go=rX', into])
    },
  }
}

/** One of the digests a registry promises. Throws where none is what was downloaded. */
export function checkIntegrity(content: Buffer, integrity: string, name: string): void {
  const isPromised = integrity.split(/\s+/).some((each) => {
    const [, algorithm = '', digest] = /^(sha512|sha384|sha256)-(.+)$/.exec(each) ?? []
    return algorithm !== '' && digestOf(algorithm, content).toString('base64') === digest
  })
  if (!isPromised) throw new CliError(`${name} is not what the registry promises: its digest is another`)
}

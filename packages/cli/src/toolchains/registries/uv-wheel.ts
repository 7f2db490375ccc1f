import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { CliError } from '../../cli-error.js'
import { readZip } from '../unzip.js'
import { digestOf, type FetchToolchain, newestOf } from './fetched-toolchain.js'

const accept = 'application/vnd.pypi.simple.v1+json, text/html;q=0.5'

interface IndexFile {
  filename: string
  url: string
  sha256: string | undefined
}

/** uv comes from PyPI as a wheel with its two programs. */
export const fetchUv: FetchToolchain = async (wanted, registry) => {
  const index = await registry.read('pypi', (base) => new URL('uv/', base), accept)
  const machine = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
  const wheels = readIndex(index.body.toString('utf8')).flatMap((file) => {
    const [, version] =
      new RegExp(`^uv-([\\d.]+)-py3-none-manylinux[\\w.]*_${machine}\\.whl$`).exec(file.filename) ?? []
    return version ? [{ ...file, version }] : []
  })
  const version = newestOf(
    wheels.map((wheel) => wheel.version),
    wanted,
  )
  const wheel = wheels.find((each) => each.version === version)
  if (!wheel || !version) throw new CliError(`PyPI has no uv ${wanted} for ${machine}`)
  return {
    version,
    source: wheel.filename,
    async unpack(into) {
      const { body } = await registry.read('pypi', () => new URL(wheel.url, index.url))
      if (wheel.sha256 === undefined || digestOf('sha256', body).toString('hex') !== wheel.sha256)
        throw new CliError(`${wheel.filename} is not what the index promises: its digest is another`)
      mkdirSync(join(into, 'bin'), { recursive: true, mode: 0o755 })
      for (const entry of readZip(body)) {
        if (!/\.data\/scripts\/uvx?$/.test(entry.name)) continue
        const file = join(into, 'bin', basename(entry.name))
        writeFileSync(file, entry.read())
        chmodSync(file, 0o755)
      }
    },
  }
}

/** The files of a project in the simple index, in either of its formats. Pure. */
export function readIndex(text: string): IndexFile[] {
  if (text.trimStart().startsWith('{')) {
    const { files = [] } = JSON.parse(text) as {
      files?: { filename: string; url: string; hashes?: { sha256?: string } }[]
    }
    return files.map(({ filename, url, hashes }) => ({ filename, url, sha256: hashes?.sha256 }))
  }
  return [...text.matchAll(/<a\b[^>]*?\bhref\s*=\s*["']([^"']*)["'][^>]*>([^<]*)<\/a>/gi)].map(
    ([, href = '', name = '']) => ({
      filename: name.trim(),
      url: href.replaceAll('&amp;', '&'),
      sha256: /#sha256=([0-9a-f]{64})/.exec(href)?.[1],
    }),
  )
}

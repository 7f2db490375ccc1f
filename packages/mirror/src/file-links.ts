import { createHmac, timingSafeEqual } from 'node:crypto'

/**
 * Addresses of files that an index names outside of its registry (PyPI keeps files on another host). The mirror fetches
 * such an address only with its own mark on it, so that a sandbox cannot use the mirror to reach any other address.
 */
export interface FileLinks {
  /** The mirror as the sandbox sees it, without a slash at the end. */
  readonly base: string
  /**
   * The mirror's address for a file. The file's own name stays at the end: clients read versions from it. `ecosystem` where the
   * registry that named the file lies at the same origin: it wants its credentials for its files too.
   */
  to(file: URL, ecosystem?: string): string
  /** The file behind the path of such an address, or `undefined` where the mark is not ours. */
  from(path: string): { url: URL; ecosystem?: string } | undefined
}

/** PEP 658: the metadata of a file lies at its address with this ending. */
const besideFile = ['.metadata', '.asc'] as const

export function signedFileLinks(options: { base: string; secret: Uint8Array }): FileLinks {
  const mark = (address: string): string =>
    createHmac('sha256', options.secret).update(address).digest('base64url').slice(0, 22)
  return {
    base: options.base,
    to(file, ecosystem) {
      const url = withoutHash(file)
      const name = url.split('/').at(-1)?.split('?')[0] ?? 'file'
      const address = ecosystem === undefined ? url : `${ecosystem} ${url}`
      return `${options.base}/files/${mark(address)}/${Buffer.from(address).toString('base64url')}/${name}${file.hash}`
    },
    from(path) {
      const [given = '', encoded = '', name = '', ...rest] = path.split('/')
      if (rest.length > 0) return undefined
      const address = Buffer.from(encoded, 'base64url').toString()
      const expected = mark(address)
      if (given.length !== expected.length || !timingSafeEqual(Buffer.from(given), Buffer.from(expected)))
        return undefined
      // An address has no space in it.
      const [url = '', ecosystem] = address.split(' ').reverse()
      const file = new URL(url)
      const ending = besideFile.find((known) => name === `${file.pathname.split('/').at(-1)}${known}`)
      if (ending) file.pathname += ending
      return { url: file, ...(ecosystem === undefined ? {} : { ecosystem }) }
    },
  }
}

function withoutHash(url: URL): string {
  const copy = new URL(url)
  copy.hash = ''
  return copy.href
}

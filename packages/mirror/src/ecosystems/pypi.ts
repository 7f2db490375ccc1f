import type { ClientSettings, Ecosystem, Resource } from '../ecosystem.js'
import type { FileLinks } from '../file-links.js'

const json = 'application/vnd.pypi.simple.v1+json'

/** pip, uv and poetry: the simple index in HTML or JSON (PEP 503, 691). Files lie on other hosts: signed links. */
export const pypi: Ecosystem = {
  name: 'pypi',
  resource(request, upstream, links) {
    const match = /^simple\/(?:([A-Za-z0-9._-]+)\/?)?$/.exec(request.path)
    if (!match) return undefined
    const project = match[1]?.toLowerCase().replace(/[-_.]+/g, '-')
    return {
      sources: upstream.registries.map((registry) => ({
        ...registry,
        url: new URL(project ? `${project}/` : '', registry.url),
      })),
      kind: 'index',
      accept: request.accept.includes(json) ? json : 'text/html',
      ...(upstream.registries.some(({ authorization }) => authorization) && { variant: 'with credentials' }),
      rewrite: (body, from, contentType) =>
        contentType.includes('json') ? rewriteJson(body, from, links) : rewriteHtml(body, from, links),
    }
  },
  clientSettings: (baseUrl): ClientSettings => ({
    env: {
      PIP_INDEX_URL: `${baseUrl}/pypi/simple/`,
      PIP_DISABLE_PIP_VERSION_CHECK: '1',
      // A distribution's pip refuses to install anything outside of a virtual environment. Its own directories cannot be
      // written in a sandbox anyway: what is installed so goes to ~/.local, which is part of what is kept.
      PIP_BREAK_SYSTEM_PACKAGES: '1',
      UV_INDEX_URL: `${baseUrl}/pypi/simple/`,
      UV_DEFAULT_INDEX: `${baseUrl}/pypi/simple/`,
      // uv would otherwise look for Python builds on a host that no package registry serves.
      UV_PYTHON_DOWNLOADS: 'never',
      // The first answer waits until the mirror has asked the machine's own pip for its index.
      PIP_DEFAULT_TIMEOUT: '120',
      UV_HTTP_TIMEOUT: '120',
    },
    files: {},
  }),
}

type Rewrite = (body: Buffer, from: URL, links: FileLinks) => ReturnType<NonNullable<Resource['rewrite']>>

const rewriteJson: Rewrite = (body, from, links) => {
  const document = JSON.parse(body.toString()) as { files?: { url?: unknown }[] }
  for (const file of document.files ?? []) {
    if (typeof file.url === 'string') file.url = linkTo(file.url, from, links)
  }
  return Buffer.from(JSON.stringify(document))
}

const rewriteHtml: Rewrite = (body, from, links) =>
  Buffer.from(
    body.toString().replace(/(<a\b[^>]*?\bhref\s*=\s*)(?:"([^"]*)"|'([^']*)')/gi, (whole, start, double, single) => {
      const target = decodeAmpersands(double ?? single ?? '')
      // The root of a simple index lists projects by relative addresses, which stay right below the mirror.
      if (target.startsWith('#') || (target.endsWith('/') && !/^[a-z]+:/i.test(target))) return whole
      return `${start}"${linkTo(target, from, links).replaceAll('&', '&amp;')}"`
    }),
  )

/** Most private indexes keep their files beside them, behind the same password. */
function linkTo(target: string, from: URL, links: FileLinks): string {
  const file = new URL(target, from)
  return links.to(file, file.origin === from.origin ? 'pypi' : undefined)
}

const decodeAmpersands = (text: string): string => text.replaceAll('&amp;', '&')

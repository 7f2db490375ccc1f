// Builds the web interface into files a server sends as they are: names with a hash, compressed beside the plain ones.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build } from 'esbuild'

/**
 * Pages talk to the server they came from, which has checked what it sends: in them every schema takes every object. The
 * library that checks would be more than half of their code.
 */
function trustingSchemas(root) {
  const protocol = join(root, 'packages/protocol/src')
  const sources = readdirSync(protocol)
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => readFileSync(join(protocol, name), 'utf8'))
  const names = new Set(
    sources.flatMap((text) => [...text.matchAll(/\bz\s*\.\s*([a-zA-Z0-9]+)/g)].map(([, name]) => name)),
  )
  const contents = `
    const check = (value) => ({ success: typeof value === 'object' && value !== null, data: value })
    const schema = new Proxy(() => undefined, {
      get: (_, name) => (name === 'parse' ? (value) => value : name === 'safeParse' ? check : schema),
      apply: () => schema,
    })
    export { ${[...names].map((name) => `schema as ${name}`).join(', ')} }`
  return {
    name: 'trusting-schemas',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^zod$/ }, () => ({ path: 'zod', namespace: 'trusting-schemas' }))
      onLoad({ filter: /.*/, namespace: 'trusting-schemas' }, () => ({ contents }))
    },
  }
}

/** Writes `index.html` and `assets/` below `out`. */
export async function bundleWeb({ root, out }) {
  rmSync(out, { recursive: true, force: true })
  mkdirSync(join(out, 'assets'), { recursive: true })
  const result = await build({
    absWorkingDir: root,
    entryPoints: ['packages/web/src/main.tsx'],
    outdir: join(out, 'assets'),
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'browser',
    target: ['chrome111', 'firefox121', 'safari17'],
    conditions: ['corral-source'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    assetNames: '[name]-[hash]',
    minify: true,
    metafile: true,
    loader: { '.woff2': 'file' },
    legalComments: 'none',
    logLevel: 'warning',
    plugins: [trustingSchemas(root)],
  })
  const outputs = Object.entries(result.metafile.outputs)
  const [script, { cssBundle, imports }] = outputs.find(([, { entryPoint }]) => entryPoint?.endsWith('main.tsx'))
  const early = imports.filter(({ kind }) => kind === 'import-statement').map(({ path }) => path)
  const address = (path) => `/assets/${basename(relative(root, path))}`
  const page = readFileSync(join(root, 'packages/web/src/index.html'), 'utf8')
    .replace('{{style}}', address(cssBundle))
    .replace('{{script}}', address(script))
    .replace('{{early}}', early.map((path) => `<link rel="modulepreload" href="${address(path)}">`).join(''))
  writeFileSync(join(out, 'index.html'), page)
  const files = ['index.html', ...readdirSync(join(out, 'assets')).map((name) => `assets/${name}`)]
  for (const name of files) {
    const bytes = readFileSync(join(out, name))
    const quality = { [constants.BROTLI_PARAM_QUALITY]: 9 }
    writeFileSync(join(out, `${name}.br`), brotliCompressSync(bytes, { params: quality }))
    writeFileSync(join(out, `${name}.gz`), gzipSync(bytes, { level: 9 }))
  }
}

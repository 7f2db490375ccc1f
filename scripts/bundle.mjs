#!/usr/bin/env node
// Bundles what is started as a program: the CLI (quick to start), the thread of its journal, and the two programs that are
// copied next to sandboxes and must stand alone, the daemon and the cradle.
import { existsSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const out = join(root, 'packages/cli/dist/bundle')
const requireShim =
  "import { createRequire as corralCreateRequire } from 'node:module'; const require = corralCreateRequire(import.meta.url);"

/** zod carries its messages in every language; ours are in one. */
const oneLanguage = {
  name: 'one-language',
  setup({ onLoad }) {
    onLoad({ filter: /zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js'",
    }))
  },
}

const common = {
  plugins: [oneLanguage],
  minifyWhitespace: true,
  minifySyntax: true,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  conditions: ['corral-source'],
  banner: { js: requireShim },
  logLevel: 'warning',
  legalComments: 'none',
  absWorkingDir: root,
}

for (const name of ['corral.js', 'journal.mjs', 'daemon.mjs', 'cradle.mjs']) rmSync(join(out, name), { force: true })
rmSync(join(out, 'chunks'), { recursive: true, force: true })

await build({
  ...common,
  entryPoints: { corral: 'packages/cli/src/corral.ts' },
  outdir: out,
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  sourcemap: true,
  external: ['@photostructure/sqlite', '@lydell/node-pty'],
})
await build({
  ...common,
  entryPoints: ['packages/daemon/src/main.ts'],
  outfile: join(out, 'daemon.mjs'),
  external: ['@lydell/node-pty'],
  minify: true,
})
await build({
  ...common,
  entryPoints: ['packages/apiserver/src/storage/journal-thread.ts'],
  outfile: join(out, 'journal.mjs'),
  external: ['@photostructure/sqlite'],
  minify: true,
})
const cradle = 'packages/node/src/cradle/main.ts'
const supervisor = 'packages/node/src/cradle/node-supervisor.ts'
if (existsSync(join(root, cradle)))
  await build({ ...common, entryPoints: [cradle], outfile: join(out, 'cradle.mjs'), minify: true })
if (existsSync(join(root, supervisor)))
  await build({ ...common, entryPoints: [supervisor], outfile: join(out, 'supervisor.mjs'), minify: true })

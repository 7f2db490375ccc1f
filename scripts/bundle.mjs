#!/usr/bin/env node
// Bundles what is started as a program: the CLI (quick to start), its threads, and the two programs that are
// copied next to sandboxes and must stand alone, the daemon and the cradle.
import { spawn } from 'node:child_process'
import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { bundleWeb } from './bundle-web.mjs'
import { putInPlace } from './put-in-place.mjs'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const place = join(root, 'packages/cli/dist/bundle')
/** Built beside its place and moved there once it is whole: a command may start meanwhile. */
const out = `${place}.new-${process.pid}`
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

/** A file of its own: a daemon that does not serve upstream's gRPC never reads it. */
const sandboxdApart = {
  name: 'sandboxd-apart',
  setup({ onResolve }) {
    onResolve({ filter: /sandboxd-server\.js$/ }, () => ({ path: './sandboxd.mjs', external: true }))
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

mkdirSync(out, { recursive: true })
process.once('exit', () => rmSync(out, { recursive: true, force: true }))

await build({
  ...common,
  // One file whose code V8 can keep; modules that are imported when needed still run only then.
  format: 'cjs',
  supported: { 'dynamic-import': false },
  charset: 'ascii',
  define: { 'import.meta.url': 'corralUrl' },
  banner: {
    js: "(function (require, module, exports, __filename) {'use strict';const corralUrl = require('node:url').pathToFileURL(__filename).href;",
  },
  footer: { js: '})' },
  entryPoints: ['packages/cli/src/corral.ts'],
  outfile: join(out, 'main.cjs'),
  sourcemap: true,
  external: ['@photostructure/sqlite', '@lydell/node-pty'],
})
writeFileSync(join(out, 'package.json'), '{ "type": "commonjs" }\n')
copyFileSync(join(root, 'packages/cli/launcher.cjs'), join(out, 'corral.js'))
chmodSync(join(out, 'corral.js'), 0o755)
await build({
  ...common,
  plugins: [oneLanguage, sandboxdApart],
  entryPoints: ['packages/daemon/src/main.ts'],
  outfile: join(out, 'daemon.mjs'),
  external: ['@lydell/node-pty'],
  minify: true,
})
await build({
  ...common,
  entryPoints: ['packages/daemon/src/sandboxd-server.ts'],
  outfile: join(out, 'sandboxd.mjs'),
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
await build({
  ...common,
  entryPoints: ['packages/node/src/disk/usage-thread.ts'],
  outfile: join(out, 'disk-usage.mjs'),
  minify: true,
})
await bundleWeb({ root, out: join(out, 'web') })
// Native code cannot be bundled: terminals inside sandboxes need it as a package beside the daemon.
for (const name of ['node-pty', `node-pty-linux-${process.arch}`]) {
  const source = join(root, 'node_modules/@lydell', name)
  if (existsSync(source))
    cpSync(source, join(out, 'node_modules/@lydell', name), { recursive: true, dereference: true })
}
const cradle = 'packages/node/src/cradle-main.ts'
const supervisor = 'packages/node/src/cradle/supervisor/node-supervisor.ts'
if (existsSync(join(root, cradle)))
  await build({ ...common, entryPoints: [cradle], outfile: join(out, 'cradle.mjs'), minify: true })
if (existsSync(join(root, supervisor)))
  await build({ ...common, entryPoints: [supervisor], outfile: join(out, 'supervisor.mjs'), minify: true })

await writeCompiled()
// V8 tells code that was compiled for another program by the length of that alone.
putInPlace(out, place, { withdrawn: ['main.cjs.compiled'], order: ['main.cjs', 'main.cjs.compiled'] })

/** Runs the program once and keeps what V8 compiled for it. Where that fails the program starts more slowly, no more. */
async function writeCompiled() {
  const dataDir = mkdtempSync(join(tmpdir(), 'corral-bundle-'))
  const readyFile = join(dataDir, 'ready.json')
  const program = [
    join(out, 'corral.js'),
    'apiserver',
    '--data-dir',
    dataDir,
    '--api-port',
    '0',
    '--ready-file',
    readyFile,
  ]
  const env = { ...process.env, CORRAL_WRITE_COMPILED: '1' }
  const run = spawn(process.execPath, program, { env, stdio: 'ignore', timeout: 20_000 })
  let isOver = false
  const end = new Promise((resolve) => run.once('exit', resolve).once('error', resolve)).then(() => {
    isOver = true
  })
  while (!isOver && !existsSync(readyFile)) await new Promise((resolve) => setTimeout(resolve, 20))
  run.kill('SIGTERM')
  await end
  rmSync(dataDir, { recursive: true, force: true })
}

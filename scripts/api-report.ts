// The public packages' exports as text, so that a change of what people import is seen in review. --check compares and writes nothing.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor'
import { publicPackages } from './packed-packages.js'

const usage = `Usage: npm run api -- [--check]

Writes docs/api/NAME.api.md for every public package from its built declarations (npm run build first).

  --check   writes nothing and fails where a report differs from the exports
`
const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const flags = process.argv.slice(2)
if (flags.some((flag) => flag !== '--check')) {
  process.stdout.write(usage)
  process.exit(flags.includes('--help') ? 0 : 2)
}
const compilerOptions = {
  target: 'es2023',
  module: 'nodenext',
  moduleResolution: 'nodenext',
  strict: true,
  skipLibCheck: true,
  lib: ['es2023', 'dom', 'dom.iterable', 'esnext.disposable'],
  types: ['node'],
}
const isCheck = flags.includes('--check')
const reports = join(root, 'docs/api')
const scratch = mkdtempSync(join(tmpdir(), 'corral-api-'))
const changed: string[] = []
try {
  mkdirSync(reports, { recursive: true })
  for (const { folder } of publicPackages(root)) {
    const file = `${folder}.api.md`
    const now = extract(folder, file)
    if (now === readIfThere(join(reports, file))) continue
    changed.push(file)
    if (!isCheck) writeFileSync(join(reports, file), now)
  }
} finally {
  rmSync(scratch, { recursive: true, force: true })
}
if (isCheck && changed.length > 0) {
  process.stderr.write(`docs/api differs from the exports: ${changed.join(', ')}. Run npm run api and commit it.\n`)
  process.exit(1)
}
process.stdout.write(changed.length === 0 ? 'docs/api is up to date\n' : `wrote ${changed.join(', ')}\n`)

function extract(folder: string, file: string): string {
  const projectFolder = join(root, 'packages', folder)
  const entry = join(projectFolder, 'dist/index.d.ts')
  const config = ExtractorConfig.prepare({
    configObject: {
      projectFolder,
      mainEntryPointFilePath: entry,
      newlineKind: 'lf',
      compiler: { overrideTsconfig: { compilerOptions, include: [entry] } },
      apiReport: {
        enabled: true,
        reportFolder: scratch,
        reportTempFolder: join(scratch, 'temp'),
        reportFileName: file,
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        compilerMessageReporting: { default: { logLevel: ExtractorLogLevel.Error } },
        extractorMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
        tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
      },
    },
    configObjectFullPath: undefined,
    packageJsonFullPath: join(projectFolder, 'package.json'),
  })
  const errors: string[] = []
  Extractor.invoke(config, {
    localBuild: true,
    messageCallback: (message) => {
      if (message.logLevel === ExtractorLogLevel.Error) errors.push(message.text)
      message.handled = true
    },
  })
  if (errors.length > 0) throw new Error(`packages/${folder} has no readable declarations: ${errors.join('; ')}`)
  return readFileSync(join(scratch, file), 'utf8')
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/**
 * The Helm chart judged by real Helm and a real API server: `npm run conformance:chart`. Every documented example is
 * rendered and applied with `--dry-run=server`; values outside the schema are refused; the kustomize base and the chart
 * give the same objects. Without Go, one line says that nothing was judged.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual, promisify } from 'node:util'
import { findKubectl } from '@corral/testing'
import { dump, load, loadAll } from 'js-yaml'
import { defaultValues } from '../../packages/cli/src/install/install-values.js'
import { installManifests } from '../../packages/cli/src/install/manifests.js'
import { ensureOracle, findGo, startControlPlane } from '../../tools/oracle/index.js'
import { badValues } from './bad-values.js'
import { valuesWith, wrongTypes } from './wrong-types.js'

const run = promisify(execFile)
const chart = join(import.meta.dirname, '../../deploy/helm/corral')
const namespace = 'corral'
interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string; namespace?: string; annotations?: Record<string, string> }
}

process.exitCode = await main()

async function main(): Promise<number> {
  const kubectl = findKubectl()
  const missing = [
    ...((await findGo()) ? [] : ['Go is not installed']),
    ...(kubectl ? [] : ['kubectl is not installed']),
  ]
  if (!kubectl || missing.length > 0) {
    process.stderr.write(`conformance: the chart is not judged here: ${missing.join('; ')}; skipped\n`)
    return 0
  }
  const { helm } = await ensureOracle(['helm'])
  const scratch = mkdtempSync(join(tmpdir(), 'corral-chart-'))
  const plane = await startControlPlane({ withControllerManager: false })
  let failures = 0
  const check = async (title: string, work: () => Promise<string | undefined>): Promise<void> => {
    const [passed, note] = await work().then(
      (said) => [true, said ?? ''] as const,
      (error: unknown) =>
        [false, `${(error as { stderr?: string }).stderr ?? (error as Error).message}`.trim()] as const,
    )
    if (!passed) failures += 1
    process.stdout.write(`${passed ? 'yes' : 'NO '} ${title}${note ? `: ${note}` : ''}\n`)
  }
  const template = async (...args: string[]): Promise<string> => {
    const base = ['template', 'corral', chart, '--namespace', namespace, '--kube-version', 'v1.34.4']
    return (await run(helm.path, [...base, ...args], { timeout: 120_000, maxBuffer: 64 * 1024 * 1024 })).stdout
  }
  const ask = (...args: string[]): Promise<{ stdout: string }> =>
    run(kubectl, ['--kubeconfig', plane.kubeconfig, ...args], { timeout: 120_000, maxBuffer: 64 * 1024 * 1024 })
  try {
    await ask('apply', '--server-side', '-f', join(chart, 'crds'))
    await ask('wait', '--for=condition=Established', '--timeout=120s', 'crd', '--all')
    await ask('create', 'namespace', namespace)
    await check(`helm ${helm.version} lints the chart`, async () => {
      await run(helm.path, ['lint', '--strict', chart], { timeout: 120_000 })
      return undefined
    })
    const examples = readdirSync(join(chart, 'examples')).map((name) => join('examples', name))
    for (const example of ['values.yaml', ...examples])
      await check(`the API server takes ${example}`, async () => {
        const objects = parsed(await template('--values', join(chart, example)))
        const [served, unserved] = split(objects)
        const file = join(scratch, 'objects.yaml')
        writeFileSync(file, served.map((object) => `---\n${dump(object)}`).join(''))
        await ask('apply', '--dry-run=server', '--validate=strict', '-f', file)
        const note = unserved.map(({ kind }) => kind).join(', ')
        return `${served.length} objects${note ? `; not served here: ${note}` : ''}`
      })
    await check('chart and kustomize base are the same objects', async () => {
      const ofChart = parsed(await template()).filter(
        ({ kind, metadata }) => kind !== 'Secret' && !metadata.annotations,
      )
      const ours = installManifests(defaultValues, { controllers: true }) as Manifest[]
      const wanted = ours.filter(({ kind }) => kind !== 'Namespace' && kind !== 'CustomResourceDefinition')
      for (const object of wanted) {
        const same = ofChart.find((other) => keyOf(other) === keyOf(object))
        if (!isDeepStrictEqual(same, JSON.parse(JSON.stringify(object)))) throw new Error(`${keyOf(object)} differs`)
      }
      if (wanted.length !== ofChart.length) throw new Error(`${ofChart.length} objects instead of ${wanted.length}`)
      const { stdout } = await run(kubectl, ['kustomize', join(chart, '../../kustomize/base')], { maxBuffer: 64 << 20 })
      return `${parsed(stdout).length} objects in the base`
    })
    for (const [what, values, rule] of badValues)
      await check(`refused: ${what}`, async () => {
        const file = join(scratch, 'values.yaml')
        writeFileSync(file, dump(values))
        const said = await template('--values', file).then(
          () => 'it was taken',
          (error: unknown) => (error as { stderr: string }).stderr,
        )
        if (!said.includes(rule)) throw new Error(`expected "${rule}", got: ${said}`)
        return undefined
      })
    const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
    const all = wrongTypes(load(readFileSync(join(chart, 'values.yaml'), 'utf8')) as object, seed)
    const some = process.argv.includes('--full') ? all : all.slice(0, 60)
    await check(`refused: ${some.length} of ${all.length} values of another type, seed ${seed}`, async () => {
      for (const wrong of some) {
        const file = join(scratch, 'values.yaml')
        writeFileSync(file, dump(valuesWith(wrong)))
        const said = await template('--values', file).then(
          () => 'it was taken',
          (error: unknown) => (error as { stderr: string }).stderr,
        )
        const place = `at '/${wrong.path.join('/')}`
        // Helm itself warns of and drops a table in the place of a plain value, and the other way round.
        if (!said.includes(place)) throw new Error(`${JSON.stringify(valuesWith(wrong))}: ${said}`)
      }
      return undefined
    })
  } finally {
    await plane.stop()
    rmSync(scratch, { recursive: true, force: true })
  }
  return failures === 0 ? 0 : 1
}

function parsed(text: string): Manifest[] {
  return loadAll(text).filter((object): object is Manifest => object !== null)
}

function keyOf({ apiVersion, kind, metadata }: Manifest): string {
  return `${apiVersion} ${kind} ${metadata.name}`
}

/** Kinds of other projects are not served by a bare API server. */
function split(objects: readonly Manifest[]): [Manifest[], Manifest[]] {
  const isForeign = ({ apiVersion }: Manifest): boolean =>
    /^(monitoring\.coreos\.com|gateway\.networking\.k8s\.io)\//.test(apiVersion)
  return [objects.filter((object) => !isForeign(object)), objects.filter(isForeign)]
}

import { equal, ok } from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { type Json, type ObjectSchema, schemaObject, spoiled } from '../differential/schema-object.js'
import { type Definition, upstreamTwins } from '../differential/upstream-crds.js'
import { randomFrom } from '../fuzz/requests.js'
import { type Check, check } from '../harness/check.js'
import type { Context } from '../harness/context.js'
import type { Answer } from '../harness/http-client.js'

const objects = 400
const changes = 60
const seed = 20261116

/** What a server says of one object: the status, the fields it complains about, and what it would store. */
interface Verdict {
  readonly asked: string
  readonly status: number
  readonly fields: readonly string[]
  readonly spec: unknown
}

const ours = (group: string): string => group.replace('upstream.example.com', 'agents.x-k8s.io')

/** What the first server said, for the second to be compared with. */
let verdictsOf: { kind: string; verdicts: readonly Verdict[] } | undefined

export const differential: readonly Check[] = [
  check(
    138,
    `${objects} generated objects and ${changes} changes: valid under our definitions exactly when under upstream's, on both servers alike`,
    async (t) => {
      const definitions = await install(t)
      const verdicts: Verdict[] = []
      const random = randomFrom(seed)
      const differences: string[] = []
      for (let index = 0; index < objects; index += 1) {
        const definition = definitions[index % definitions.length]!
        const asked = generated(definition, index, random)
        await compare(t, definition, asked, verdicts, differences, (path, body) =>
          t.post(`${path}?dryRun=All&fieldValidation=Strict`, body),
        )
      }
      await compareChanges(
        t,
        definitions.find(({ spec }) => spec.names.kind === 'Sandbox')!,
        random,
        verdicts,
        differences,
      )
      const accepted = verdicts.filter(({ status }) => status < 300).length
      ok(
        accepted > verdicts.length / 4 && accepted < (verdicts.length * 3) / 4,
        `${accepted} of ${verdicts.length} accepted`,
      )
      if (verdictsOf && verdictsOf.kind !== t.server.kind)
        differences.push(...serverDifferences(verdictsOf.verdicts, verdicts))
      verdictsOf = { kind: t.server.kind, verdicts }
      equal(differences.length, 0, `${differences.length} differences\n${differences.slice(0, 10).join('\n')}`)
      process.stderr.write(`${t.server.kind} 138: ${accepted} of ${verdicts.length} accepted (seed ${seed})\n`)
    },
    { needsGo: true, heavy: true },
  ),
]

async function install(t: Context): Promise<Definition[]> {
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
  const definitions = await upstreamTwins()
  for (const definition of definitions) {
    await t.create(path, definition)
    t.after(async () => {
      await t.del(`${path}/${definition.metadata.name}`)
    })
  }
  for (const { spec } of definitions) {
    const collection = await t.group(`${spec.group}/v1beta1`, spec.names.plural)
    await t.eventually(`${spec.names.plural} served`, async () => (await t.get(collection)).status === 200)
  }
  return definitions
}

type Asked = { metadata: { name: string }; [field: string]: Json }

/** An object made from the definition's own schema; two of three are spoiled. */
function generated({ spec }: Definition, index: number, random: () => number): Asked {
  const { spec: field } = spec.versions.find(({ name }) => name === 'v1beta1')!.schema.openAPIV3Schema.properties!
  let value = schemaObject(field as ObjectSchema, random)
  for (let count = index % 3; count > 0; count -= 1) value = spoiled(value, random)
  return { metadata: { name: `object-${index}` }, spec: value }
}

/** Asks the same of both definitions and keeps what ours says; anything else than the same answer is a difference. */
async function compare(
  t: Context,
  { spec }: Definition,
  asked: Asked,
  verdicts: Verdict[],
  differences: string[],
  ask: (path: string, body: object) => Promise<Answer>,
): Promise<void> {
  const answers: Verdict[] = []
  for (const group of [ours(spec.group), spec.group]) {
    const apiVersion = `${group}/v1beta1`
    const path = await t.group(apiVersion, spec.names.plural)
    const body = { apiVersion, kind: spec.names.kind, ...asked }
    answers.push(verdictOf(await ask(path, body), `${spec.names.kind} ${JSON.stringify(asked.spec)}`))
  }
  const [mine, upstreams] = answers
  if (!isDeepStrictEqual(mine, upstreams))
    differences.push(`ours ${JSON.stringify(mine)}\nupstream's ${JSON.stringify(upstreams)}`)
  verdicts.push(mine!)
}

function verdictOf(answer: Answer, asked: string): Verdict {
  const { body, status } = answer
  if (status < 300) return { asked, status, fields: [], spec: body.spec }
  const causes = (body.details?.causes ?? []) as { field?: string }[]
  return { asked, status, fields: [...new Set(causes.map(({ field }) => field ?? ''))].sort(), spec: undefined }
}

/** Stored Sandboxes that are changed: the rule about claim templates sees the old state too. */
async function compareChanges(
  t: Context,
  definition: Definition,
  random: () => number,
  verdicts: Verdict[],
  differences: string[],
): Promise<void> {
  const { properties } = definition.spec.versions[0]!.schema.openAPIV3Schema.properties!.spec!
  const templates = properties!.volumeClaimTemplates!
  const podTemplate = { spec: { containers: [{ name: 'main', image: 'example/one:1' }] } }
  const spec = (): Json => ({
    podTemplate,
    ...(random() < 0.5 ? { volumeClaimTemplates: random() < 0.5 ? [] : schemaObject(templates, random, 1) } : {}),
  })
  for (let index = 0; index < changes; index += 1) {
    const before = spec()
    const after = random() < 0.4 ? before : spec()
    const name = `change-${index}`
    const asked: Asked = { metadata: { name }, spec: after }
    await compare(t, definition, asked, verdicts, differences, async (path, body) => {
      const created = await t.create(path, { ...body, spec: before })
      const { resourceVersion } = created.metadata
      return t.put(`${path}/${name}?dryRun=All`, { ...body, metadata: { name, resourceVersion } })
    })
  }
}

/** Differences between two servers about the same objects, both under our definitions. */
function serverDifferences(first: readonly Verdict[], second: readonly Verdict[]): string[] {
  return second.flatMap((verdict, index) =>
    isDeepStrictEqual(verdict, first[index])
      ? []
      : [`this server ${JSON.stringify(verdict)}\nthe other ${JSON.stringify({ ...first[index], asked: undefined })}`],
  )
}

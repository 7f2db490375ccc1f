import { isDeepStrictEqual } from 'node:util'
import { load } from 'js-yaml'
import { type Answered, masked } from '../differential/answers.js'
import type { Asked } from '../differential/asked.js'
import { Recorded } from '../differential/recorded.js'
import { requests } from '../differential/requests.js'
import { type Check, check } from '../harness/check.js'
import type { Context } from '../harness/context.js'

interface Verdict {
  readonly status: number
}

const titleOf = ({ method, path, type, accept, body }: Asked): string =>
  [method, path, type, accept, typeof body === 'string' ? body : JSON.stringify(body)].filter(Boolean).join(' ')

export const answers: readonly Check[] = [
  check(
    141,
    `${requests.length} requests, half of them wrong in some way, get the same answers: objects, owners, causes, warnings`,
    async (t) => {
      const namespace = await t.ns()
      const account = await t.core('serviceaccounts', 'default')
      await t.eventually('the default account', async () => (await t.get(account)).status === 200)
      const recorded = new Recorded<Verdict>(t, 'answers.jsonl')
      for (const asked of requests) {
        const answer = masked(await ask(t, asked, namespace), namespace) as Verdict
        recorded.compare(titleOf(asked), answer, (wanted, got) => isSame(wanted, got, t.isEmbedded))
      }
      recorded.finish()
    },
    {
      differs: 'a few malformed requests that the real one answers with 500 are a 4xx of the embedded one',
    },
  ),
]

async function ask(t: Context, asked: Asked, namespace: string): Promise<Answered> {
  const fill = (text: string): string => text.replaceAll('{ns}', namespace)
  const { method, type, accept, body } = asked
  const text = body === undefined ? undefined : fill(typeof body === 'string' ? body : JSON.stringify(body))
  const options = {
    ...(text === undefined ? {} : { body: text }),
    ...(type ? { contentType: type } : {}),
    ...(accept ? { accept } : {}),
  }
  // The real one puts off what it is asked about a kind it has only just learnt of.
  const answer = await t.eventually('an answer', async () => {
    const first = await t.call(method, fill(asked.path), options)
    return first.status !== 429 && first
  })
  const { status, text: said, headers } = answer
  const contentType = headers['content-type'] ?? ''
  const isYaml = contentType.startsWith('application/yaml')
  // What is said in YAML is compared by its meaning; that it is YAML is part of the answer.
  const read = contentType.startsWith('application/json') ? answer.body : isYaml ? { yaml: load(said) } : said
  return { status, warnings: warningsIn(answer.warnings), body: read }
}

/** Several headers arrive as one. */
const warningsIn = (header: string): string[] => (header === '' ? [] : header.split(/, (?=299 - )/))

function isSame(wanted: Verdict, got: Verdict, isEmbedded: boolean): boolean {
  if (isEmbedded && wanted.status >= 500) return got.status >= 400 && got.status < 500
  return isDeepStrictEqual(wanted, got)
}

import { type Command, commands } from '../differential/kubectl-commands.js'
import { Recorded } from '../differential/recorded.js'
import { type Check, check } from '../harness/check.js'
import { anyKubectl, type RunResult } from '../harness/kubectl.js'

interface Said {
  readonly code: number
  readonly out: string
  readonly err: string
}

const titleOf = ({ args, input, editor }: Command): string => [...args, input, editor].filter(Boolean).join(' ')

/** What kubectl printed, without what differs from run to run; columns are as wide as their contents. */
function plain(text: string, namespace: string): string {
  return text
    .replaceAll(namespace, '{ns}')
    .replace(/\b10\.\d+\.\d+\.\d+\b/g, 'ADDRESS')
    .replace(/\b(\d+m)?\d+s\b/g, 'AGE')
    .replace(/ {2,}/g, '  ')
}

export const kubectlAnswers: readonly Check[] = [
  check(
    142,
    `${commands.length} less usual calls of kubectl print the same and end the same`,
    async (t) => {
      const namespace = await t.ns()
      const recorded = new Recorded<Said>(t, 'kubectl-answers.jsonl')
      for (const command of commands) {
        const { input, editor } = command
        const { code, out, err }: RunResult = await t.kubectl(anyKubectl, ['-n', namespace, ...command.args], {
          ...(input === undefined ? {} : { input }),
          ...(editor === undefined ? {} : { env: { KUBE_EDITOR: editor } }),
        })
        recorded.compare(titleOf(command), { code, out: plain(out, namespace), err: plain(err, namespace) })
      }
      recorded.finish()
    },
    { heavy: true },
  ),
]

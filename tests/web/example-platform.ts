import type {
  AgentInfo,
  GroupView,
  ObjectView,
  PoolInfo,
  ProjectView,
  SandboxInfo,
  SettingsView,
  TaskEvent,
  TaskEventBody,
  TaskSummary,
  TaskView,
} from '@corral/protocol'
import { summaryOf } from '@corral/protocol'
import type { Answer, ScriptedPlatform } from './scripted-page.js'

/** A platform in the middle of a working day, the same one every time: for pictures. */

export const exampleNow: Date = new Date('2026-03-12T10:30:00Z')

const before = (seconds: number): string => new Date(exampleNow.getTime() - seconds * 1_000).toISOString()

type Given = Partial<TaskView> & Pick<TaskView, 'id' | 'status' | 'task'>

const view = (given: Given, ageSeconds: number): TaskView => ({
  repo: '/src/shop',
  project: 'shop',
  base_branch: 'main',
  agent: { name: 'claude', model: 'claude-sonnet-4-5' },
  timeout_seconds: 3600,
  created_at: before(ageSeconds),
  ...given,
})

const timesFrom = (startSeconds: number, ...steps: number[]): TaskView['times'] => {
  const names = [
    'queued_at',
    'provisioning_at',
    'sandbox_ready_at',
    'repository_ready_at',
    'setup_done_at',
    'running_at',
    'agent_finished_at',
    'result_collected_at',
    'pushed_at',
    'finished_at',
  ]
  const passed = (count: number): number => steps.slice(0, count).reduce((sum, step) => sum + step, 0)
  return Object.fromEntries(steps.map((_, index) => [names[index], before(startSeconds - passed(index + 1))]))
}

const used = (input: number, output: number, cost: number): TaskView['usage'] => ({
  input_tokens: input,
  output_tokens: output,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  cost_usd: cost,
})

const sandbox = (name: string): TaskView['sandbox'] => ({
  claim: `claim-${name}`,
  name: `default-${name}`,
  pod: `default-${name}`,
  isolation: 'bubblewrap',
})

const finished = (id: string): Partial<TaskView> => ({
  outcome: 'changes',
  branch: `corral/${id}`,
  new_branch: `corral/${id}`,
  base_commit: '3bd298917c40f6d4c40c9d7d0cf7b2d6c9f6e001',
  commit: '9f1c2d7e5a6b40f6d4c40c9d7d0cf7b2d6c9f6e0',
  pushed: true,
})

export const exampleTasks: readonly TaskView[] = [
  view(
    {
      id: 'task-plan42',
      status: 'WAITING_APPROVAL',
      task: 'Document the public cart API',
      mode: 'plan',
      sandbox: sandbox('sq9xh'),
      times: timesFrom(190, 0, 1, 1, 3, 1, 1),
      egress: ['packages.example.com:443'],
      limits: { max_cost_usd: 2 },
      usage: used(41_200, 2_310, 0.11),
      plan: {
        revision: 2,
        text: '1. Read `src/cart.ts` and find every caller of `total()`.\n2. Round in **one** place: `total()`, with `round()` from `money.ts`.\n3. Clamp at zero so that a coupon never pays out.\n4. Add two tests; run the suite.',
        proposed_at: before(120),
        expires_at: before(-86_000),
      },
    },
    190,
  ),
  view(
    {
      id: 'task-ask77',
      status: 'WAITING_INPUT',
      task: 'Choose how carts of guests are kept',
      sandbox: sandbox('m2kpd'),
      ask: 'input',
      times: timesFrom(400, 0, 1, 1, 3, 1, 1),
      usage: used(18_000, 900, 0.05),
      questions: [
        {
          id: 'q-1',
          kind: 'input',
          text: 'Should carts of guests survive the session, or end with it?',
          options: [
            { id: 'keep', label: 'Keep for 30 days' },
            { id: 'end', label: 'End with the session' },
          ],
          asked_at: before(95),
          expires_at: before(-86_000),
        },
      ],
    },
    400,
  ),
  view(
    {
      id: 'task-run01',
      status: 'RUNNING',
      task: 'Flaky test: cart totals under load',
      sandbox: sandbox('x7r2d'),
      times: timesFrom(205, 0, 1, 1, 4, 2, 1),
      usage: used(88_000, 5_900, 0.31),
    },
    205,
  ),
  view(
    {
      id: 'task-run02',
      status: 'PROVISIONING',
      task: 'Move the coupon table to its own schema',
      agent: { name: 'codex' },
      sandbox: sandbox('t9w3c'),
      times: timesFrom(9, 0, 1, 1, 3),
    },
    9,
  ),
  view(
    {
      id: 'task-wait1',
      status: 'QUEUED',
      task: 'Write release notes for 2.4',
      agent: { name: 'gemini' },
      queue: { position: 1, reason: 'limit of 4 running tasks reached', since: before(60) },
    },
    60,
  ),
  view(
    {
      id: 'task-vat01',
      status: 'SUCCEEDED',
      task: 'Add VAT to invoices\n\nEvery invoice shows the net sum, the tax and the sum to pay. Round once, at the end.',
      ...finished('task-vat01'),
      diff_stat: { files_changed: 4, insertions: 23, deletions: 3 },
      sandbox: sandbox('bj652'),
      times: timesFrom(1500, 0, 1, 1, 5, 2, 0, 52, 4, 1, 0),
      usage: used(210_000, 12_400, 0.82),
      egress: ['packages'],
    },
    1500,
  ),
  view(
    {
      id: 'task-tot02',
      status: 'SUCCEEDED',
      task: 'Totals are off by fractions of a cent and can go negative with coupons',
      ...finished('task-tot02'),
      diff_stat: { files_changed: 2, insertions: 9, deletions: 4 },
      times: timesFrom(5200, 0, 1, 1, 5, 2, 0, 140, 4, 1, 0),
      usage: used(120_000, 8_400, 0.47),
    },
    5200,
  ),
  view(
    {
      id: 'task-up001',
      status: 'FAILED',
      task: 'Upgrade the test runner and fix what breaks',
      cause: {
        code: 'AgentFailed',
        message: 'the agent ended with exit code 1',
        hint: 'The last lines of its output say why. Retry goes on from what it did.',
      },
      exit_code: 1,
      times: timesFrom(2600, 0, 1, 1, 5, 2, 0, 31, 1, 0, 0),
      usage: used(64_000, 3_100, 0.2),
    },
    2600,
  ),
  view(
    {
      id: 'task-old01',
      status: 'SUCCEEDED',
      task: 'Check whether the coupon migration can run twice',
      outcome: 'no_changes',
      agent: { name: 'command', command: 'make check' },
      times: timesFrom(90_000, 0, 1, 1, 5, 2, 0, 31, 1, 0, 0),
    },
    90_000,
  ),
]

export const examplePatch = `diff --git a/docs/guide.md b/docs/guide.md
index 1111111..2222222 100644
--- a/docs/guide.md
+++ b/docs/guide.md
@@ -80,4 +80,4 @@ ## Sums
 A cart has lines, and lines have a price and a count.
-Sums are rounded where they are made.
+Sums are rounded once, where they are shown.
 A coupon never makes a sum negative.
 
diff --git a/src/cart.ts b/src/cart.ts
index 3333333..4444444 100644
--- a/src/cart.ts
+++ b/src/cart.ts
@@ -14,5 +14,6 @@ export function subtotal(lines: Line[]): number {
 }
 
 export function total(lines: Line[], discount: number): number {
-  return subtotal(lines) - discount
+  const due = subtotal(lines) - discount
+  return round(Math.max(0, due))
 }
diff --git a/src/tax.ts b/src/tax.ts
new file mode 100644
index 0000000..5555555
--- /dev/null
+++ b/src/tax.ts
@@ -0,0 +1,6 @@
+export const taxRate = 0.2
+
+/** The price with tax. */
+export function withTax(value: number): number {
+  return value * (1 + taxRate)
+}
diff --git a/test/cart.test.ts b/test/cart.test.ts
index 6666666..7777777 100644
--- a/test/cart.test.ts
+++ b/test/cart.test.ts
@@ -1,6 +1,14 @@ import { total } from '../src/cart.js'
 test('total of one line', () => {
-  expect(total([{ price: 2, count: 3 }], 1)).toBe(5)
+  expect(total([{ price: 2, count: 3 }], 1)).toBe(5.0)
 })
 
+test('a coupon never pays out', () => {
+  expect(total([{ price: 2, count: 1 }], 10)).toBe(0)
+})
+
+test('cents are rounded once', () => {
+  expect(total([{ price: 0.1, count: 3 }], 0)).toBe(0.3)
+})
+
 export {}
`

const log = (fromSeconds: number, bodies: readonly TaskEventBody[]): TaskEvent[] =>
  bodies.map((body, index) => ({ sequence: index + 1, time: before(fromSeconds - index * 2), ...body }))

const started: readonly TaskEventBody[] = [
  { type: 'stage', stage: 'claim', state: 'started' },
  { type: 'stage', stage: 'claim', state: 'finished' },
  { type: 'stage', stage: 'repository', state: 'started' },
  { type: 'stage', stage: 'repository', state: 'finished' },
  { type: 'stage', stage: 'agent', state: 'started' },
]

const worked: readonly TaskEventBody[] = [
  ...started,
  {
    type: 'message',
    role: 'assistant',
    text: 'I read the cart first: **rounding happens in three places**. I will keep it in `total()` alone.',
  },
  { type: 'tool_call', call_id: 'c1', tool: 'Read', summary: 'src/cart.ts' },
  {
    type: 'tool_result',
    call_id: 'c1',
    is_error: false,
    text: 'export function total(lines: Line[], discount: number)',
  },
  { type: 'tool_call', call_id: 'c2', tool: 'Edit', summary: 'src/cart.ts' },
  { type: 'file_changed', path: 'src/cart.ts', change: 'edited' },
  { type: 'tool_result', call_id: 'c2', is_error: false, text: 'edited' },
  { type: 'tool_call', call_id: 'c3', tool: 'Bash', summary: 'npm test' },
  {
    type: 'tool_result',
    call_id: 'c3',
    is_error: false,
    text: ' ✓ total of one line\n ✓ a coupon never pays out\n ✓ cents are rounded once\n\n3 passed',
  },
]

export const exampleEvents: Readonly<Record<string, readonly TaskEvent[]>> = {
  'task-plan42': log(180, [
    ...started,
    { type: 'message', role: 'assistant', text: 'I looked at every caller of `total()` before I propose anything.' },
    { type: 'tool_call', call_id: 'c1', tool: 'Grep', summary: 'total\\(' },
    {
      type: 'tool_result',
      call_id: 'c1',
      is_error: false,
      text: 'src/cart.ts:16\nsrc/invoice.ts:40\ntest/cart.test.ts:2',
    },
    { type: 'plan', revision: 2, text: exampleTasks[0]?.plan?.text ?? '' },
  ]),
  'task-ask77': log(380, [
    ...started,
    {
      type: 'message',
      role: 'assistant',
      text: 'Two designs are possible. They differ in what a guest sees tomorrow.',
    },
    {
      type: 'question',
      question: 'q-1',
      kind: 'input',
      text: 'Should carts of guests survive the session, or end with it?',
      options: [
        { id: 'keep', label: 'Keep for 30 days' },
        { id: 'end', label: 'End with the session' },
      ],
    },
  ]),
  'task-run01': log(190, [
    ...worked,
    {
      type: 'output',
      stream: 'stdout',
      text: 'run 1 of 20: 3 passed\nrun 2 of 20: 3 passed\nrun 3 of 20: \u001b[31m1 failed\u001b[0m\n',
    },
  ]),
  'task-vat01': log(1490, [
    ...worked,
    { type: 'stage', stage: 'agent', state: 'finished' },
    { type: 'stage', stage: 'push', state: 'finished', detail: 'corral/task-vat01' },
    { type: 'result', status: 'SUCCEEDED', outcome: 'changes', branch: 'corral/task-vat01' },
  ]),
  'task-up001': log(2590, [
    ...started,
    { type: 'output', stream: 'stdout', text: 'npm install vitest@4\n' },
    {
      type: 'output',
      stream: 'stderr',
      text: 'npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree\n',
    },
    { type: 'stage', stage: 'agent', state: 'failed' },
    { type: 'result', status: 'FAILED', cause: exampleTasks[7]?.cause },
  ]),
}

const agents: AgentInfo[] = [
  {
    name: 'claude',
    title: 'Claude Code',
    summary: 'Plans, asks, is steered while it works, continues its session.',
    version: '2.1.4',
    is_ready: true,
    takes_command: false,
  },
  {
    name: 'codex',
    title: 'Codex',
    summary: 'Continues its session.',
    version: '0.61.0',
    is_ready: false,
    problem: 'Codex needs a key for OpenAI: give it under Settings, Agents and keys',
    needs_secret: 'openai',
    takes_command: false,
  },
  {
    name: 'gemini',
    title: 'Gemini CLI',
    summary: 'Continues its session.',
    is_ready: false,
    problem: 'Gemini CLI is not installed: corral agent install gemini',
    install: 'corral agent install gemini',
    takes_command: false,
  },
  { name: 'command', title: 'A command line', summary: 'Runs what you give it.', is_ready: true, takes_command: true },
]

const sandboxes: SandboxInfo[] = [
  {
    name: 'default-x7r2d',
    state: 'ready',
    pool: 'default',
    claim: 'claim-x7r2d',
    task: 'task-run01',
    pod: 'default-x7r2d',
    addresses: ['10.244.0.12'],
    node: 'corral',
    created_at: before(300),
  },
  {
    name: 'default-sq9xh',
    state: 'suspended',
    reason: 'Suspended',
    message: 'the sandbox is paused',
    claim: 'claim-sq9xh',
    task: 'task-plan42',
    created_at: before(280),
  },
  {
    name: 'default-v4k8z',
    state: 'ready',
    pool: 'default',
    pod: 'default-v4k8z',
    addresses: ['10.244.0.14'],
    node: 'corral',
    created_at: before(90),
  },
  {
    name: 'default-t9w3c',
    state: 'waiting',
    reason: 'ContainerCreating',
    message: 'the container is being created',
    pool: 'default',
    created_at: before(4),
  },
]
const pools: PoolInfo[] = [
  { name: 'default', template: 'default', replicas: 2, ready: 1, created_at: before(400_000) },
  { name: 'gvisor', template: 'gvisor', replicas: 1, ready: 1, created_at: before(300_000) },
]

const project: ProjectView = {
  name: 'shop',
  description: 'The shop: carts, invoices, coupons',
  repo: '/src/shop',
  base_branch: 'main',
  agent: { name: 'claude' },
  setup: 'npm ci',
  checks: [{ name: 'tests', command: 'npm test' }],
  egress: ['packages'],
  resource_version: '7',
  created_at: before(900_000),
}

const settings: SettingsView = {
  provider: 'embedded',
  revision: 'a1',
  active: { provider: 'embedded', namespace: 'corral' },
  can_choose_provider: true,
}

const checks = [
  ['api', 'Kubernetes API', 'ok', 'v1.34.1'],
  ['auth', 'Credentials', 'ok', 'accepted as admin'],
  ['namespace', 'Namespace', 'ok', 'agents exists'],
  ['kinds', 'Agent Sandbox resources', 'ok', 'agents.x-k8s.io v1beta1; extensions.agents.x-k8s.io v1beta1'],
  ['controller', 'Controller', 'ok', 'runs, v0.4.5'],
  ['permissions', 'Permissions', 'ok', '6 of 6 verbs allowed'],
  ['runtime-class', 'Runtime class', 'fail', 'there is no RuntimeClass "kata"; there are gvisor'],
  ['network-policy', 'Network policies', 'ok', 'enforced'],
  ['pools', 'Warm pools', 'ok', 'default: 2 of 2 ready'],
  ['sandbox', 'Test sandbox', 'ok', 'claimed in 41 ms, ran /bin/true, given back'],
].map(([check, title, state, detail]) => ({
  check,
  title,
  state,
  detail,
  ms: 4,
  ...(state === 'fail'
    ? {
        remedy: 'Install its runtime on the nodes and create RuntimeClass "kata", or choose the default.',
        command: 'kubectl get runtimeclasses',
      }
    : {}),
}))

const object: ObjectView = {
  kind: 'SandboxWarmPool',
  name: 'default',
  namespace: 'corral',
  yaml: 'apiVersion: extensions.agents.x-k8s.io/v1beta1\nkind: SandboxWarmPool\nmetadata:\n  name: default\nspec:\n  replicas: 2\n',
  events: [
    { type: 'Normal', reason: 'Created', message: 'Created sandbox default-v4k8z', count: 1, last_seen: before(90) },
  ],
}

const [attempt] = exampleTasks.filter(({ id }) => id === 'task-vat01')
const group: GroupView = {
  name: 'group-vat',
  branch: 'vat',
  tasks: attempt
    ? [
        { ...attempt, group: { name: 'group-vat', number: 1, size: 2, branch: 'vat' } },
        {
          ...attempt,
          id: 'task-vat02',
          agent: { name: 'codex' },
          diff_stat: { files_changed: 2, insertions: 61, deletions: 12 },
          usage: used(90_000, 7_000, 0.4),
          group: { name: 'group-vat', number: 2, size: 2, branch: 'vat' },
        },
      ]
    : [],
}

export const summaries: readonly TaskSummary[] = exampleTasks.map(summaryOf)

export const exampleAnswers: Readonly<Record<string, Answer>> = {
  '/session': { version: '0.1.0', default_agent: 'claude', local_repositories: true },
  '/agents': { agents },
  '/secrets': {
    secrets: [
      { name: 'anthropic', title: 'Key of Anthropic', is_set: true },
      { name: 'openai', title: 'Key of OpenAI', is_set: false },
    ],
  },
  '/sandboxes': { sandboxes },
  '/pools': { pools },
  '/objects/sandboxwarmpool/default': object,
  '/projects': { projects: [project] },
  '/projects/shop': project,
  '/groups/group-vat': group,
  '/settings': settings,
  '/kubernetes/contexts': {
    contexts: [
      { name: 'laptop', cluster: 'kind', is_current: true },
      { name: 'staging', cluster: 'staging', namespace: 'agents', is_current: false },
    ],
  },
  '/kubernetes/namespaces': { names: ['agents', 'default', 'kube-system'] },
  '/kubernetes/runtime-classes': { names: ['gvisor', 'kata'] },
  'POST /settings/test': `${checks.map((check) => JSON.stringify(check)).join('\n')}\n`,
  ...Object.fromEntries(exampleTasks.map((task) => [`/tasks/${task.id}`, task])),
  ...Object.fromEntries(
    exampleTasks.map((task) => [`/tasks/${task.id}/diff`, task.outcome === 'changes' ? examplePatch : '']),
  ),
}

export const examplePlatform: ScriptedPlatform = {
  answers: exampleAnswers,
  first: [{ type: 'tasks', cursor: 'example.1', reset: true, changed: summaries, removed: [] }],
  onSubscribe: ({ task, after }) => {
    const events = (exampleEvents[task] ?? []).filter(({ sequence }) => sequence > after)
    const isEnded = ['SUCCEEDED', 'FAILED', 'CANCELLED'].includes(
      exampleTasks.find(({ id }) => id === task)?.status ?? '',
    )
    return [{ type: 'events', task, events }, ...(isEnded ? [{ type: 'ended' as const, task }] : [])]
  },
}

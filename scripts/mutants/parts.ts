/** What `npm run mutants` changes, per package: parts that unit tests hold as a whole, and parts that are sampled. */
export interface Parts {
  /** Every mutant of these files and folders is tried. */
  pure: readonly string[]
  /** Files and folders whose tests start processes: a random sample of their lines. */
  sampled: readonly string[]
  /** Tests of the parts that are tried as a whole: those that start no process, since each of thousands of mutants runs them. */
  tests: readonly string[]
  /** Tests of the sampled parts; `tests` where left out. */
  sampledTests?: readonly string[]
}

const ownTests = ['src/**/*.test.ts']

export const partsOf: Readonly<Record<string, Parts>> = {
  tasks: {
    pure: [
      ...inFolder('src/agent-task', ['admission', 'claim', 'finish', 'plan', 'pod-eviction', 'refused-egress']),
      ...inFolder('src/agent-task', ['step-failure', 'step-runner', 'usage-record', 'pod-start', 'task-status']),
      ...inFolder('src/agent-task', ['ended-step', 'action-events', 'sandbox-record', 'step-stages']),
      ...inFolder('src', ['task-page', 'task-retry']),
      ...inFolder('src/event-log', ['event-lines', 'followers', 'memory-event-log']),
    ],
    sampled: ['src/repository', 'src/broker', 'src/steps/follow-output.ts', 'src/event-log/file-event-log.ts'],
    tests: ['src/*.test.ts', ...['agent-task', 'event-log', 'checks', 'held', 'plan-approval'].map(testsIn)],
    sampledTests: [
      ...['broker', 'repository', 'steps', 'event-log'].map(testsIn),
      '../../tests/repositories/{sources,very-large,lfs-server}.test.ts',
      '../../tests/attacks/{repository-config,repository-credentials,result-bundles}.test.ts',
    ],
  },
  // Tests of the programs beside agents start processes, and those programs are texts that no mutant gets into.
  agents: { pure: ['src'], sampled: [], tests: ['src/**/!(*-client).test.ts'] },
  server: { pure: ['src'], sampled: [], tests: ownTests },
  controllers: {
    pure: [
      ...inFolder('src/sandbox', [
        'explain',
        'status',
        'service-ports',
        'service-plan',
        'pod-plan',
        'pvc-plan',
        'expiry',
        'next-look',
      ]),
      ...inFolder('src/sandbox-claim', ['candidate', 'warm-queue', 'plan', 'expiry', 'env-injection', 'adoptable']),
      ...inFolder('src/sandbox-claim', ['next-look', 'first-ready', 'claim-problem']),
      ...inFolder('src/sandbox-warm-pool', ['plan', 'scale', 'members']),
      ...inFolder('src/shared', ['merge-diff', 'pool-levels']),
      'src/sandbox-template/plan.ts',
    ],
    sampled: [],
    tests: [...ownTests, '../../tests/controllers/{claim,pool,sandbox,explain}-*.test.ts'],
  },
}

function inFolder(folder: string, names: readonly string[]): string[] {
  return names.map((name) => `${folder}/${name}.ts`)
}

function testsIn(folder: string): string {
  return `src/${folder}/*.test.ts`
}

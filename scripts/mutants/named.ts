/** A fault that once went in unseen, and the test that has to see it. */
export interface NamedMutant {
  what: string
  file: string
  find: string
  replace: string
  /** The test file that is run. */
  test: string
  /** The title of the tests in it that are run; one has to fail. */
  fails: RegExp
}

const tasks = 'packages/tasks/src'

export const namedMutants: readonly NamedMutant[] = [
  {
    what: 'a result bundle may carry other refs',
    file: `${tasks}/repository/quarantine.ts`,
    find: 'if (names.length !== 1 || names[0] !== resultRef)',
    replace: 'if (!names.includes(resultRef))',
    test: 'tests/attacks/result-bundles.test.ts',
    fails: /a second ref beside the result/,
  },
  {
    what: 'a result bundle may have any size',
    file: `${tasks}/repository/quarantine.ts`,
    find: 'if (size > limits.bundleBytes)',
    replace: 'if (size < 0)',
    test: 'tests/attacks/result-bundles.test.ts',
    fails: /a bundle larger than allowed is refused/,
  },
  {
    what: 'a result may change any number of files',
    file: `${tasks}/repository/tree-walk.ts`,
    find: 'if (files > limits.changedFiles ||',
    replace: 'if (files < 0 ||',
    test: `${tasks}/repository/tree-walk.test.ts`,
    fails: /one new file more/,
  },
  {
    what: 'the broker keeps no pace',
    file: `${tasks}/broker/request-pace.ts`,
    find: 'return count <= limit',
    replace: 'return count <= limit || true',
    test: `${tasks}/broker/broker.test.ts`,
    fails: /more requests of one task than the pace allows/,
  },
  {
    what: 'the broker takes a body of any size',
    file: `${tasks}/broker/request-body.ts`,
    find: 'if (this.size > maxBytes) onTooLarge()',
    replace: 'if (this.size < 0) onTooLarge()',
    test: `${tasks}/broker/broker.test.ts`,
    fails: /a body over the limit/,
  },
  {
    what: 'the broker answers a task that does not run',
    file: `${tasks}/broker/brokered-task.ts`,
    find: "return hasPassed(task, 'SetupDone') && isAgentThere && !isFinished(task)",
    replace: 'return isAgentThere || !isFinished(task) || true',
    test: `${tasks}/broker/brokered-task.test.ts`,
    fails: /may use no model/,
  },
  {
    what: 'the broker is told of tasks that may use no model',
    file: `${tasks}/broker/brokered-task.ts`,
    find: 'task && mayUseModel(task) ? providerNameOf(task)',
    replace: 'task ? providerNameOf(task)',
    test: `${tasks}/broker/brokered-task.test.ts`,
    fails: /nothing when 'it does not run'/,
  },
  {
    what: 'usage that the agent claims is counted',
    file: `${tasks}/agent-task/usage-record.ts`,
    find: "(event as { source?: string }).source !== 'agent'",
    replace: "(event as { source?: string }).source !== ''",
    test: `${tasks}/agent-task/usage-record.test.ts`,
    fails: /what an agent claims to have used/,
  },
  {
    what: 'a failed step is not tried again',
    file: `${tasks}/agent-task/step-failure.ts`,
    find: 'if (failures < maxFailures) return undefined',
    replace: 'if (failures < 0) return undefined',
    test: `${tasks}/agent-task/step-failure.test.ts`,
    fails: /when 'the connection is lost once'/,
  },
  {
    what: 'a failed step ends the task instead of waiting',
    file: `${tasks}/agent-task/reconciler.ts`,
    find: 'return { requeueAfterMs: move.requeueAfterMs }',
    replace: 'return {} as never',
    test: 'tests/tasks/reconciler.test.ts',
    fails: /tried again/,
  },
  {
    what: 'an egress grant is recorded, and the sandbox gets no network',
    file: `${tasks}/agent-task/claim.ts`,
    find: '...(egress.length > 0',
    replace: '...(egress.length < 0',
    test: `${tasks}/agent-task/claim.test.ts`,
    fails: /gives the sandbox the network/,
  },
  {
    what: 'followers wait for ever when the result event could not be written',
    file: `${tasks}/agent-task/finish.ts`,
    find: 'if (!last?.finished) ports.records.events.end(uid)',
    replace: 'if (last === null) ports.records.events.end(uid)',
    test: `${tasks}/agent-task/finish.test.ts`,
    fails: /followers are let go/,
  },
  {
    what: 'the bookmark behind the initial state is one version too high',
    file: 'packages/apiserver/src/read/watch.ts',
    find: 'representation.bookmark(String(store.head), annotations)',
    replace: 'representation.bookmark(String(store.head + 1), annotations)',
    test: 'packages/apiserver/src/read/bookmarks.test.ts',
    fails: /behind the initial state/,
  },
  {
    what: 'a later bookmark is one version too high',
    file: 'packages/apiserver/src/read/watch.ts',
    find: 'representation.bookmark(String(last))',
    replace: 'representation.bookmark(String(last + 1))',
    test: 'packages/apiserver/src/read/bookmarks.test.ts',
    fails: /at a later bookmark/,
  },
]

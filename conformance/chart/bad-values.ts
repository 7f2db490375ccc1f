/** Values that the schema refuses: what is wrong, the values, and words of the refusal that name the place. */
export const badValues: readonly (readonly [what: string, values: object, names: string])[] = [
  ['a value nobody knows', { replicas: 3 }, "additional properties 'replicas' not allowed"],
  ['a misspelt value', { server: { maxTask: 3 } }, "at '/server'"],
  ['a negative limit', { server: { maxTasks: -1 } }, "at '/server/maxTasks'"],
  ['a number as text', { server: { maxTasks: '10' } }, "at '/server/maxTasks'"],
  ['half a sandbox', { sandbox: { warm: 1.5 } }, "at '/sandbox/warm'"],
  ['an agent that is a command line', { server: { agent: "x'; --host" } }, "at '/server/agent'"],
  [
    'a namespace selector that selects everybody by accident',
    { networkPolicy: { httpFrom: [] } },
    "at '/networkPolicy/httpFrom'",
  ],
  ['a peer without a selector', { networkPolicy: { httpFrom: [{}] } }, "at '/networkPolicy/httpFrom/0'"],
  [
    'a port that does not exist',
    { networkPolicy: { apiServerPorts: [{ port: 70_000 }] } },
    "at '/networkPolicy/apiServerPorts/0/port'",
  ],
  ['an image with a space', { image: { repository: 'a b' } }, "at '/image/repository'"],
  ['a number as the tag', { image: { tag: 1.1 } }, "at '/image/tag'"],
  ['an unknown pull policy', { image: { pullPolicy: 'Sometimes' } }, "at '/image/pullPolicy'"],
  ['an unknown log level', { server: { logLevel: 'loud' } }, "at '/server/logLevel'"],
  ['a size that is no quantity', { server: { persistence: { size: 'big' } } }, "at '/server/persistence/size'"],
  ['an ingress without a host', { ingress: { enabled: true } }, "at '/ingress/host'"],
  ['a route without a parent', { httpRoute: { enabled: true } }, "at '/httpRoute/parentRefs'"],
  ['an unknown end of tasks', { drain: { tasks: 'maybe' } }, "at '/drain/tasks'"],
  ['a Secret name in capitals', { server: { existingSecret: 'Mine' } }, "at '/server/existingSecret'"],
]

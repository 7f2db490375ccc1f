/** One call of kubectl; `{ns}` stands for a namespace of its own. */
export interface Command {
  readonly args: readonly string[]
  readonly input?: string
  /** A command that edits the file it is given, in place of a person. */
  readonly editor?: string
}

const one = (line: string, more: Omit<Command, 'args'> = {}): Command => ({ args: line.split(' '), ...more })

const manifest = `
apiVersion: v1
kind: ConfigMap
metadata: {name: cm, labels: {app: x}}
data: {a: b}
---
apiVersion: v1
kind: Secret
metadata: {name: sec, labels: {app: x}}
stringData: {a: b}
---
apiVersion: v1
kind: Service
metadata: {name: svc}
spec: {selector: {app: run}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Pod
metadata: {name: pend, labels: {app: pend}}
spec: {containers: [{name: main, image: "example/x:1"}]}
---
apiVersion: agents.x-k8s.io/v1beta1
kind: Sandbox
metadata: {name: box}
spec: {podTemplate: {spec: {containers: [{name: c, image: "x:1"}]}}}
`
const changed = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm, labels: {app: x}}\ndata: {a: changed}\n'
const secret = 'apiVersion: v1\nkind: Secret\nmetadata: {name: sec, labels: {app: x}}\nstringData: {a: d}\n'
const misspelt = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: odd, lables: {}}\ndatas: {a: b}\n'

/** The less usual commands, in an order in which later ones are about what earlier ones left. */
export const commands: readonly Command[] = [
  one('apply -f -', { input: manifest }),
  one('wait --for=jsonpath={.data.a}=b cm/cm --timeout=5s'),
  one('wait --for=jsonpath={.data.a}=zzz cm/cm --timeout=1s'),
  one('get cm,secret -l app=x'),
  one('get pods --field-selector=spec.nope=x'),
  one('get cm --chunk-size=1 -l app=x -o name'),
  one('get --raw /readyz/ping'),
  one('describe svc svc'),
  one('logs pend'),
  one('exec pend -- true'),
  one('debug pend --copy-to=copy --container=main -- sh -c true'),
  one('get pod copy -o jsonpath={.spec.containers[0].command}{.spec.containers[0].name}'),
  one('top pods'),
  one('rollout restart pod/pend'),
  one('scale cm/cm --replicas=1'),
  one('expose pod pend --port=80 --name=exposed'),
  one('create sa worker'),
  one('create token worker --duration=5s'),
  one('create token none'),
  one('create cm cm --from-literal=a=b'),
  one('auth can-i get pods'),
  one('explain cm.nope'),
  one('label cm cm a=b'),
  one('label cm cm a=c'),
  one('label cm cm a=c --overwrite'),
  one('annotate cm cm x=y'),
  one('label cm cm a=d --resource-version=1 --overwrite'),
  { args: ['patch', 'cm', 'cm', '--type=json', '-p', '[{"op":"remove","path":"/data/none"}]'] },
  { args: ['patch', 'sandbox', 'box', '-p', '{"spec":{"shutdownPolicy":"Delete"}}'] },
  { args: ['patch', 'sandbox', 'box', '--type=merge', '-p', '{"spec":{"shutdownPolicy":"Nope"}}'] },
  one('edit cm cm', { editor: 'sed -i s/a:.b/a: edited/' }),
  one('edit cm cm', { editor: 'true' }),
  one('apply -f - --server-side', { input: changed }),
  one('apply -f - --server-side --force-conflicts', { input: changed }),
  one('apply view-last-applied cm cm'),
  one('apply --prune -l app=x -f - --prune-allowlist=core/v1/ConfigMap', { input: secret }),
  one('get cm,secret -l app=x -o name'),
  one('replace --force -f -', { input: secret }),
  one('create -f - --validate=ignore', { input: misspelt }),
  one('create -f - --validate=warn', { input: misspelt }),
  one('create -f -', { input: misspelt }),
  one('delete cm none'),
  one('delete cm odd --dry-run=server'),
  one('delete cm odd --cascade=foreground --timeout=20s'),
  one('delete sandbox box --wait=false'),
  one('delete pod pend --now'),
]

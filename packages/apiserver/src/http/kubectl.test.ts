import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { embeddedCrds } from '@corral/resources'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ApiServer, createApiServer } from '../server/api-server.js'
import { memoryStorage } from '../storage/memory-storage.js'
import { writeKubeconfig } from './kubeconfig.js'
import { type HttpsEndpoint, serveHttps } from './serve-https.js'

/** The oldest and the newest in every run; those between them in full size, and all of them in `npm run conformance:real`. */
const VERSIONS = process.env.CORRAL_TEST_SIZE === 'full' ? ['1.30', '1.31', '1.32', '1.33'] : ['1.30', '1.33']

/** The versioned binaries lie where the `kubectl` on the PATH links to, where they lie at all. */
function findKubectl(version: string): string | undefined {
  const links = (process.env.PATH ?? '').split(delimiter).map((directory) => join(directory, 'kubectl'))
  const roots = links.filter((path) => existsSync(path)).map((path) => dirname(realpathSync(path)))
  return roots.map((directory) => join(directory, `kubectl.${version}`)).find((path) => existsSync(path))
}

const MANIFEST = `
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers: [{name: c, image: "example/web:1", ports: [{containerPort: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: agents.x-k8s.io/v1beta1
kind: Sandbox
metadata: {name: box}
spec: {podTemplate: {spec: {containers: [{name: c, image: example/web}]}}}
`

for (const version of VERSIONS) {
  const binary = findKubectl(version)
  describe.skipIf(!binary)(`kubectl ${version}${binary ? '' : ' (not installed)'}`, () => {
    let directory: string
    let server: ApiServer
    let endpoint: HttpsEndpoint

    beforeAll(async () => {
      directory = mkdtempSync(join(tmpdir(), 'corral-kubectl-'))
      server = await createApiServer({ storage: memoryStorage(), crds: embeddedCrds() })
      endpoint = await serveHttps({ server, port: 0, dataDir: directory })
      writeKubeconfig(join(directory, 'kubeconfig'), endpoint)
      writeFileSync(join(directory, 'all.yaml'), MANIFEST)
    })
    afterAll(async () => {
      await endpoint.close()
      await server.close()
      rmSync(directory, { recursive: true, force: true })
    })

    const environment = (): NodeJS.ProcessEnv => ({
      PATH: process.env.PATH,
      HOME: directory,
      KUBECONFIG: join(directory, 'kubeconfig'),
    })
    const kubectl = (...args: string[]): Promise<{ code: number; out: string; err: string }> =>
      new Promise((resolve) => {
        execFile(binary!, args, { env: environment(), cwd: directory }, (error, out, err) => {
          resolve({ code: error ? Number(error.code ?? 1) : 0, out, err })
        })
      })

    it('14: discovers and prints tables', async () => {
      const { out } = await kubectl('get', 'namespaces')
      expect(out).toMatch(/^NAME +STATUS +AGE\ndefault +Active/)
    })

    it('applies on the client, then changes nothing, then applies on the server', async () => {
      expect((await kubectl('apply', '-f', 'all.yaml')).out).toContain('sandbox.agents.x-k8s.io/box created')
      expect((await kubectl('apply', '-f', 'all.yaml')).out).toBe(
        'pod/web unchanged\nservice/web unchanged\nsandbox.agents.x-k8s.io/box unchanged\n',
      )
      expect(await kubectl('apply', '--server-side', '-f', 'all.yaml')).toMatchObject({ code: 0 })
    })

    it('15: shows pods and services under "all", and short names', async () => {
      const { out } = await kubectl('get', 'all')
      expect(out).toContain('pod/web')
      expect(out).toContain('service/web')
      expect((await kubectl('api-resources')).out).toMatch(/configmaps +cm +v1/)
    })

    it('19, 20: refuses a misspelt field, or warns', async () => {
      const misspelt = MANIFEST.split('---')[0]!
        .replace('containers:', 'nodeNmae: x\n  containers:')
        .replace('name: web', 'name: bad')
      writeFileSync(join(directory, 'bad.yaml'), misspelt)
      const strict = await kubectl('create', '-f', 'bad.yaml')
      expect(strict.code).not.toBe(0)
      expect(strict.err).toContain('strict decoding error: unknown field "spec.nodeNmae"')
      const warned = await kubectl('create', '-f', 'bad.yaml', '--validate=warn')
      expect(warned).toMatchObject({ code: 0, err: expect.stringContaining('unknown field "spec.nodeNmae"') })
    })

    it('22: creates typed objects, in protobuf where the version sends it', async () => {
      for (const args of [
        ['create', 'configmap', 'typed', '--from-literal=a=b'],
        ['create', 'secret', 'generic', 'typed', '--from-literal=a=b'],
        ['create', 'serviceaccount', 'typed'],
        ['create', 'deployment', 'typed', '--image=x', '--replicas=0'],
        ['create', 'token', 'typed'],
      ]) {
        expect(await kubectl(...args)).toMatchObject({ code: 0 })
      }
      expect((await kubectl('get', 'configmap', 'typed', '-o', 'jsonpath={.data.a}')).out).toBe('b')
      expect((await kubectl('get', 'deployment', 'typed', '-o', 'jsonpath={.spec.replicas}')).out).toBe('0')
    })

    it('58: patches, labels and annotates', async () => {
      const image = '{"spec":{"containers":[{"name":"c","image":"example/web:2"}]}}'
      expect(await kubectl('patch', 'pod', 'web', '-p', image)).toMatchObject({ code: 0 })
      const merge = ['--type=merge', '-p', '{"metadata":{"labels":{"m":"1"}}}']
      expect(await kubectl('patch', 'sandbox', 'box', ...merge)).toMatchObject({ code: 0 })
      const json = ['--type=json', '-p', '[{"op":"add","path":"/metadata/labels/j","value":"1"}]']
      expect(await kubectl('patch', 'pod', 'web', ...json)).toMatchObject({ code: 0 })
      expect((await kubectl('label', 'pod', 'web', 'l=1')).out).toContain('labeled')
      expect((await kubectl('annotate', 'pod', 'web', 'a=1')).out).toContain('annotated')
      const labels = JSON.parse((await kubectl('get', 'pod', 'web', '-o', 'jsonpath={.metadata.labels}')).out)
      expect(labels).toEqual({ app: 'web', j: '1', l: '1' })
    })

    it('18: explains built-in and custom kinds', async () => {
      expect((await kubectl('explain', 'pods.spec')).out).toContain('containers')
      expect((await kubectl('explain', 'sandbox.spec')).out).toContain('podTemplate')
    })

    it('124: answers who one is and what one may do', async () => {
      expect((await kubectl('auth', 'can-i', 'create', 'pods')).out.trim()).toBe('yes')
      expect((await kubectl('auth', 'whoami')).out).toContain('corral-admin')
      expect((await kubectl('auth', 'can-i', '--list')).code).toBe(0)
    })

    it('describes a pod with its events', async () => {
      const { out, code } = await kubectl('describe', 'pod', 'web')
      expect(code).toBe(0)
      expect(out).toMatch(/Name: +web/)
    })

    it('112: scales a pool', async () => {
      const pool = {
        apiVersion: 'extensions.agents.x-k8s.io/v1beta1',
        kind: 'SandboxWarmPool',
        metadata: { name: 'pool' },
        spec: { replicas: 1, sandboxTemplateRef: { name: 't' } },
      }
      writeFileSync(join(directory, 'pool.json'), JSON.stringify(pool))
      expect(await kubectl('create', '-f', 'pool.json')).toMatchObject({ code: 0 })
      expect(await kubectl('scale', 'sandboxwarmpool/pool', '--replicas=3')).toMatchObject({ code: 0 })
      expect((await kubectl('get', 'sandboxwarmpool', 'pool', '-o', 'jsonpath={.spec.replicas}')).out).toBe('3')
    })

    it('104: waits for a definition', async () => {
      const crd = 'crd/sandboxes.agents.x-k8s.io'
      expect(await kubectl('wait', '--for=condition=Established', crd, '--timeout=20s')).toMatchObject({ code: 0 })
    })

    it('watches what another command does', async () => {
      const watching = spawn(binary!, ['get', 'configmaps', '-w', '--output-watch-events'], { env: environment() })
      let seen = ''
      watching.stdout.on('data', (chunk) => {
        seen += chunk
      })
      await expect.poll(() => seen).toContain('EVENT')
      await kubectl('create', 'configmap', 'watched')
      await kubectl('delete', 'configmap', 'watched')
      await expect.poll(() => seen).toMatch(/ADDED +watched[\s\S]*DELETED +watched/)
      watching.kill()
      await new Promise((resolve) => watching.on('close', resolve))
    })

    it('deletes and waits until it is gone', async () => {
      expect(await kubectl('delete', 'pod', 'web')).toMatchObject({ code: 0, out: expect.stringContaining('deleted') })
      expect((await kubectl('get', 'pod', 'web')).err).toContain('pods "web" not found')
      expect(await kubectl('create', 'namespace', 'gone')).toMatchObject({ code: 0 })
      expect(await kubectl('delete', 'namespace', 'gone', '--timeout=20s')).toMatchObject({ code: 0 })
    })
  })
}

import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadKubeConfig } from './load-kubeconfig.js'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'corral-kubeconfig-'))
})
afterEach(async () => {
  await rm(directory, { recursive: true, force: true })
})

async function write(name: string, content: string | object): Promise<string> {
  const file = join(directory, name)
  await mkdir(join(file, '..'), { recursive: true })
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}
const base64 = (text: string) => Buffer.from(text).toString('base64')
const named = (field: string, entries: Record<string, object>) =>
  Object.entries(entries).map(([name, value]) => ({ name, [field]: value }))
const config = (parts: {
  current?: string
  clusters?: Record<string, object>
  users?: Record<string, object>
  contexts?: Record<string, object>
}) => ({
  apiVersion: 'v1',
  kind: 'Config',
  ...(parts.current ? { 'current-context': parts.current } : {}),
  clusters: named('cluster', parts.clusters ?? {}),
  users: named('user', parts.users ?? {}),
  contexts: named('context', parts.contexts ?? {}),
})
const one = (cluster: object, user: object, context: object = {}) =>
  config({
    current: 'c',
    clusters: { k: { server: 'https://host:6443', ...cluster } },
    users: { u: user },
    contexts: { c: { cluster: 'k', user: 'u', ...context } },
  })

describe('loadKubeConfig', () => {
  it('S2-I3: reads YAML with everything inline', async () => {
    const path = await write(
      'config',
      [
        'current-context: c',
        `clusters: [{name: k, cluster: {server: "https://host:6443/base", certificate-authority-data: ${base64('CA')}, tls-server-name: other}}]`,
        'contexts: [{name: c, context: {cluster: k, user: u, namespace: team}}]',
        `users: [{name: u, user: {client-certificate-data: ${base64('CERT')}, client-key-data: ${base64('KEY')}}}]`,
      ].join('\n'),
    )
    const access = await loadKubeConfig({ path })
    expect(access.server.href).toBe('https://host:6443/base')
    expect(access.namespace).toBe('team')
    expect(access.tls).toEqual({ ca: 'CA', rejectUnauthorized: true, servername: 'other' })
    expect(await access.credentials()).toEqual({ cert: 'CERT', key: 'KEY' })
    expect(access.origin).toBe(`${path} (context "c")`)
  })

  it('finds certificates beside the file that names them', async () => {
    await write('pki/ca.pem', 'CA')
    await write('pki/cert.pem', 'CERT')
    await write('pki/key.pem', 'KEY')
    const user = { 'client-certificate': 'pki/cert.pem', 'client-key': 'pki/key.pem' }
    const path = await write('config', one({ 'certificate-authority': 'pki/ca.pem' }, user))
    const access = await loadKubeConfig({ path })
    expect(access.tls.ca).toBe('CA')
    expect(await access.credentials()).toEqual({ cert: 'CERT', key: 'KEY' })
  })

  it('merges the files of KUBECONFIG: the first to name a thing wins, missing files are skipped', async () => {
    const first = await write('a/config', config({ current: 'c', contexts: { c: { cluster: 'k', user: 'u' } } }))
    const second = await write('b/config', {
      ...config({
        current: 'other',
        clusters: { k: { server: 'https://second' } },
        users: { u: { token: 'two' } },
        contexts: { c: { cluster: 'wrong' } },
      }),
    })
    const KUBECONFIG = [join(directory, 'missing'), first, second].join(delimiter)
    const access = await loadKubeConfig({ env: { KUBECONFIG } })
    expect(access.server.host).toBe('second')
    expect(await access.credentials()).toEqual({ authorization: 'Bearer two' })
  })

  it('S2-R4: takes ~/.kube/config without KUBECONFIG, and another context and namespace when told', async () => {
    const both = config({
      current: 'a',
      clusters: { k: { server: 'https://host' } },
      contexts: { a: { cluster: 'k' }, b: { cluster: 'k', namespace: 'bee' } },
    })
    await write('.kube/config', both)
    const env = { HOME: directory }
    expect((await loadKubeConfig({ env })).namespace).toBe('default')
    expect((await loadKubeConfig({ env, context: 'b' })).namespace).toBe('bee')
    expect((await loadKubeConfig({ env, context: 'b', namespace: 'mine' })).namespace).toBe('mine')
  })

  it('reads a token file again when the token was refused', async () => {
    const tokenFile = await write('token', 'first\n')
    const path = await write('config', one({}, { tokenFile: 'token', token: 'ignored' }))
    const access = await loadKubeConfig({ path })
    expect(await access.credentials()).toEqual({ authorization: 'Bearer first' })
    await writeFile(tokenFile, 'second')
    expect(await access.credentials({ refused: true })).toEqual({ authorization: 'Bearer second' })
  })

  it('knows the proxy on the way and whom the user acts as', async () => {
    const user = {
      token: 't',
      as: 'jane',
      'as-uid': '7',
      'as-groups': ['a', 'b'],
      'as-user-extra': { 'Scope/x': ['y'] },
    }
    const path = await write('config', one({ 'proxy-url': 'http://proxy:3128' }, user))
    const access = await loadKubeConfig({ path })
    expect(access.proxy?.href).toBe('http://proxy:3128/')
    expect(await access.credentials()).toEqual({
      authorization: 'Bearer t',
      impersonation: {
        'impersonate-user': 'jane',
        'impersonate-uid': '7',
        'impersonate-group': ['a', 'b'],
        'impersonate-extra-scope%2fx': ['y'],
      },
    })
  })

  it('S4-A5: uses the ServiceAccount of the pod when there is no kubeconfig', async () => {
    await write('sa/token', 'pod-token')
    await write('sa/ca.crt', 'CA')
    await write('sa/namespace', 'team\n')
    const env = { HOME: directory, KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }
    const access = await loadKubeConfig({ env, serviceAccountDir: join(directory, 'sa') })
    expect(access.server.href).toBe('https://[fd00::1]/')
    expect(access.namespace).toBe('team')
    expect(access.tls.ca).toBe('CA')
    expect(await access.credentials()).toEqual({ authorization: 'Bearer pod-token' })
  })

  it.each<{ when: string; content: string | object; context?: string; code: string; says: string[] }>([
    { when: 'it is no YAML', content: '{', code: 'KubeConfigInvalid', says: ['config', 'not YAML'] },
    { when: 'it is a list', content: '[]', code: 'KubeConfigInvalid', says: ['config', 'not a mapping'] },
    { when: 'it is empty', content: '', code: 'KubeConfigInvalid', says: ['current-context is not set'] },
    {
      when: 'the context does not exist',
      content: one({}, {}),
      context: 'other',
      code: 'KubeConfigInvalid',
      says: ['config', 'no context "other"', 'there are: c'],
    },
    {
      when: 'the cluster does not exist',
      content: one({}, {}, { cluster: 'x' }),
      code: 'KubeConfigInvalid',
      says: ['context "c"', 'no cluster "x"'],
    },
    {
      when: 'the user does not exist',
      content: one({}, {}, { user: 'x' }),
      code: 'KubeConfigInvalid',
      says: ['context "c"', 'no user "x"'],
    },
    {
      when: 'the server is no URL',
      content: one({ server: 'https://[' }, {}),
      code: 'KubeConfigInvalid',
      says: ['context "c"', 'is no URL'],
    },
    {
      when: 'a certificate cannot be read',
      content: one({ 'certificate-authority': 'nowhere.pem' }, {}),
      code: 'KubeConfigInvalid',
      says: ['certificate-authority of "k"', 'nowhere.pem', 'ENOENT'],
    },
    {
      when: 'half of a certificate pair is missing',
      content: one({}, { 'client-certificate-data': base64('CERT') }),
      code: 'KubeConfigInvalid',
      says: ['user "u"', 'belong together'],
    },
    {
      when: 'the exec plugin speaks an unknown version',
      content: one({}, { exec: { apiVersion: 'client.authentication.k8s.io/v1alpha1', command: 'x' } }),
      code: 'KubeConfigInvalid',
      says: ['user "u"', 'v1alpha1'],
    },
    {
      when: 'the proxy speaks something else',
      content: one({ 'proxy-url': 'socks4://proxy:1080' }, {}),
      code: 'KubeConfigInvalid',
      says: ['context "c"', 'proxy-url of socks4: is not supported'],
    },
    {
      when: 'groups are given for nobody',
      content: one({}, { 'as-groups': ['a'] }),
      code: 'KubeConfigInvalid',
      says: ['user "u"', 'need "as"'],
    },
  ])('says what is wrong when $when', async ({ content, context, code, says }) => {
    const path = await write('config', content)
    const error = await loadKubeConfig(context === undefined ? { path } : { path, context }).catch((thrown) => thrown)
    expect(error).toMatchObject({ name: 'KubeError', code })
    for (const words of says) expect(error.message).toContain(words)
  })

  it.each([
    { when: 'the given file is missing', options: () => ({ path: join(directory, 'none') }) },
    { when: 'there is nothing at all', options: () => ({ env: { HOME: directory } }) },
  ])('says so when $when', async ({ options }) => {
    await expect(loadKubeConfig(options())).rejects.toMatchObject({ code: 'KubeConfigNotFound' })
  })
})

describe('an exec credential plugin', () => {
  /** A plugin that counts its runs and prints what the test wants. */
  async function plugin(status: object | string, changes: object = {}) {
    const runs = join(directory, 'runs')
    const answer =
      typeof status === 'string'
        ? status
        : `printf '%s' '${JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status })}'`
    const script = await write(
      'bin/plugin',
      `#!/bin/sh\necho "$1 $EXTRA $KUBERNETES_EXEC_INFO" >> '${runs}'\n${answer}\n`,
    )
    await chmod(script, 0o755)
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: './bin/plugin',
      args: ['login'],
      env: [{ name: 'EXTRA', value: 'more' }],
      ...changes,
    }
    const path = await write('config', one({ 'certificate-authority-data': base64('CA') }, { exec }))
    return {
      access: await loadKubeConfig({ path }),
      runs: async () => (await readFile(runs, 'utf8')).trim().split('\n'),
    }
  }

  it('is run once for many calls and told who asks', async () => {
    const { access, runs } = await plugin({ token: 't' }, { provideClusterInfo: true })
    const all = await Promise.all([access.credentials(), access.credentials(), access.credentials()])
    expect(all).toEqual(Array(3).fill({ authorization: 'Bearer t' }))
    const [first, ...others] = await runs()
    expect(others).toEqual([])
    expect(first).toContain('login more')
    expect(first).toContain('"server":"https://host:6443/"')
    expect(first).toContain(base64('CA'))
  })

  it('is run again when its token expired or was refused', async () => {
    const { access, runs } = await plugin({ token: 't', expirationTimestamp: '2020-01-01T00:00:00Z' })
    await access.credentials()
    await access.credentials()
    expect(await runs()).toHaveLength(2)
    await access.credentials({ refused: true })
    expect(await runs()).toHaveLength(3)
  })

  it('may hand out a client certificate', async () => {
    const { access } = await plugin({ clientCertificateData: 'CERT', clientKeyData: 'KEY' })
    expect(await access.credentials()).toEqual({ cert: 'CERT', key: 'KEY' })
  })

  it.each<{ when: string; status: object | string; changes?: object; says: string }>([
    { when: 'it fails', status: 'echo "please log in" >&2; exit 1', says: 'please log in' },
    { when: 'it prints nonsense', status: 'echo hello', says: 'printed no JSON' },
    { when: 'it hands out nothing', status: {}, says: 'neither a token nor a certificate' },
    {
      when: 'it is not installed',
      status: {},
      changes: { command: 'corral-no-such-plugin', installHint: 'get it from the shop' },
      says: 'get it from the shop',
    },
  ])('is reported with file and context when $when', async ({ status, changes, says }) => {
    const { access } = await plugin(status, changes)
    const error = await access.credentials().catch((thrown) => thrown)
    expect(error).toMatchObject({ code: 'CredentialsUnavailable' })
    expect(error.message).toContain(says)
    expect(error.message).toContain('context "c"')
  })
})

import { SandboxError } from '@corral/agent-sandbox-sdk'
import { KubeError } from '@corral/resources'
import { expect, it } from 'vitest'
import { clusterHint } from './cluster-hint.js'

const ofSdk = (code: 'ConnectionLost' | 'CertificateInvalid' | 'Forbidden'): SandboxError =>
  new SandboxError(code, 'x', { cause: new KubeError(code, 'x') })

it.each<[sentence: string, thrown: unknown, hint: RegExp | undefined]>([
  ['a kubeconfig that is not there', Object.assign(new Error('x'), { code: 'KubeConfigNotFound' }), /corral up/],
  [
    'a server that refuses connections',
    new KubeError('ConnectionLost', 'x'),
    /No API server answers.*corral up -d.*--context/,
  ],
  ['the same from the SDK', ofSdk('ConnectionLost'), /No API server answers.*corral up -d/],
  ['an old kubeconfig whose cluster is another one now, from the SDK', ofSdk('CertificateInvalid'), /corral up -d/],
  ['a sandbox that went away', new SandboxError('ConnectionLost', 'x', { cause: new Error('closed') }), undefined],
  ['a quota of the cluster, from the SDK', ofSdk('Forbidden'), undefined],
  ['a server that does not answer', new KubeError('Timeout', 'x'), /does not answer in time/],
  ['a certificate of another authority', new KubeError('CertificateInvalid', 'x'), /certificate-authority/],
  ['credentials that ended', new KubeError('Unauthorized', 'x'), /Sign in again/],
  ['a right that is missing', new KubeError('Forbidden', 'x'), /lacks that right/],
  ['an object that is not there', new KubeError('NotFound', 'x'), undefined],
  ['a connection that is none to a cluster', Object.assign(new Error('x'), { code: 'ConnectionLost' }), undefined],
  ['a mistake in the program', new TypeError('x'), undefined],
])('%s', (_, thrown, hint) => {
  if (hint) expect(clusterHint(thrown)).toMatch(hint)
  else expect(clusterHint(thrown)).toBeUndefined()
})

import { describe, expect, it } from 'vitest'
import { type ManagerCommand, managerFlags, parseManagerOptions } from './flags.js'

function command(...argv: string[]): ManagerCommand {
  const parsed = parseManagerOptions(argv)
  if ('error' in parsed) throw new Error(parsed.error)
  return parsed.command
}

describe('flags of the manager', () => {
  it('S3-F1 S3-F6 S3-F10 S3-F11 S3-F12 S3-F13: have a default each', () => {
    const defaults = Object.fromEntries(managerFlags.map((flag) => [flag.name, flag.default]))
    expect(defaults).toMatchObject({
      version: false,
      'leader-election-namespace': '',
      'pprof-block-profile-rate': 1_000_000,
      'pprof-mutex-profile-fraction': 10,
      'kube-api-qps': -1,
      'kube-api-burst': 10,
    })
  })

  it('S3-F2 S3-F3 S3-F4 S3-F5 S3-F7 S3-F8 S3-F9 S3-F14 S3-F15 S3-F16 S3-F17 S3-F18 S3-F19: have the defaults of upstream 1.0.3', () => {
    const { options, client, leaderElect } = command()
    expect(options).toMatchObject({
      extensions: false,
      workers: { sandbox: 100, claim: 50, pool: 1, template: 1 },
      sandbox: { clusterDomain: 'cluster.local', writeBehindWindowMs: 0 },
      pool: {
        maxBatchSize: 300,
        replenishDelayMs: 0,
        maxRefillPerSecond: 0,
        readinessGraceMs: 300_000,
        unschedulableRecheckMs: 60_000,
        markEvictable: true,
      },
      endpoints: { metricsAddress: ':8080', healthAddress: ':8081', pprof: false, pprofDebug: false },
      cacheLabelSelectors: false,
      tracing: false,
    })
    expect(client).toEqual({ connections: 1, separateWatchConnection: false })
    expect(leaderElect).toBe(true)
  })

  it('S3-U1: are read in every form Go reads', () => {
    const parsed = command(
      '--extensions',
      '-leader-elect=false',
      '--cluster-domain',
      'x.local',
      '--sandbox-warm-pool-replenish-delay=1m30s',
    )
    expect(parsed.options.extensions).toBe(true)
    expect(parsed.leaderElect).toBe(false)
    expect(parsed.options.sandbox.clusterDomain).toBe('x.local')
    expect(parsed.options.pool.replenishDelayMs).toBe(90_000)
  })

  it.each([
    { argv: ['--sandbox-concurrent-workers=0'], error: 'concurrent workers must be greater than 0' },
    { argv: ['--sandbox-claim-concurrent-workers=-1'], error: 'concurrent workers must be greater than 0' },
    {
      argv: ['--sandbox-warm-pool-max-batch-size=0'],
      error: 'sandbox-warm-pool-max-batch-size must be greater than 0',
    },
    {
      argv: ['--sandbox-warm-pool-max-refill-rate=Inf'],
      error: 'sandbox-warm-pool-max-refill-rate must be a finite value >= 0 (0 disables pacing)',
    },
    {
      argv: ['--sandbox-warm-pool-max-refill-rate=NaN'],
      error: 'sandbox-warm-pool-max-refill-rate must be a finite value >= 0 (0 disables pacing)',
    },
    {
      argv: ['--sandbox-write-behind-window=-1s'],
      error: 'sandbox-write-behind-window must be >= 0 (0 disables write-behind coalescing)',
    },
    {
      argv: ['--sandbox-warm-pool-readiness-grace-period=0s'],
      error: '--sandbox-warm-pool-readiness-grace-period must be a positive duration',
    },
    {
      argv: ['--sandbox-warm-pool-unschedulable-recheck-interval=0'],
      error: '--sandbox-warm-pool-unschedulable-recheck-interval must be a positive duration',
    },
    { argv: ['--kube-api-burst=0'], error: 'kube-api-burst must be greater than 0' },
    { argv: ['--api-connections=0'], error: 'api-connections must be greater than or equal to 1' },
    { argv: ['--tls-min-version=VersionTLS12'], error: 'TLS flags require --metrics-secure-serving' },
    {
      argv: ['--metrics-secure-serving', '--tls-min-version=TLS12'],
      error: 'invalid TLS configuration: unknown tls version "TLS12"',
    },
    { argv: ['--webhook-port=9443'], error: 'flag provided but not defined: -webhook-port' },
    { argv: ['--kube-api-burst=ten'], error: 'invalid value "ten" for flag -kube-api-burst: parse error' },
    { argv: ['--cluster-domain'], error: 'flag needs an argument: -cluster-domain' },
  ])('S3-11 S3-U3: refuse $argv', ({ argv, error }) => {
    expect(parseManagerOptions(argv)).toEqual({ error })
  })

  it('accept cipher suites by their IANA names', () => {
    const { options } = command(
      '--metrics-secure-serving',
      '--tls-min-version=VersionTLS12',
      '--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256',
    )
    expect(options.endpoints.metricsTls).toEqual({
      minVersion: 'TLSv1.2',
      cipherSuites: ['ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
    })
    expect(parseManagerOptions(['--metrics-secure-serving', '--tls-cipher-suites=TLS_NOPE'])).toHaveProperty('error')
  })

  it('S3-11: warn of more workers than the machine or the API burst can take', () => {
    expect(command('--sandbox-concurrent-workers=2000').warnings).toHaveLength(1)
    expect(command('--kube-api-qps=5').warnings).toHaveLength(1)
    expect(command().warnings).toEqual([])
  })

  it('have no name twice', () => {
    expect(new Set(managerFlags.map(({ name }) => name)).size).toBe(managerFlags.length)
  })
})

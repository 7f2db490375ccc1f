import { controllerOf, findCondition, isConditionTrue, type Sandbox, type Stored } from '@corral/resources'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { annotations, labels, normalizeCreatedBy } from './names.js'
import { isExtensionsOwner } from './ownership.js'

const claimBuckets = [100, 250, 500, 750, 1000, 1250, 1500, 2000, 2500, 5000, 10_000, 30_000, 60_000, 120_000, 240_000]
const creationBuckets = [
  50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 120_000, 240_000, 300_000, 600_000,
]

export interface LaunchLabels {
  launchType: string
  template: string
}

/** What the claim controller counts. */
export interface ClaimMetrics {
  created(
    claim: LaunchLabels & { namespace: string; pool: string; isReady: boolean; createdBy: string | undefined },
  ): void
  /** From an admission webhook's stamp to the first Ready. */
  webhookLatency(ms: number, launch: LaunchLabels): void
  /** From the moment the controller first saw the claim. */
  controllerLatency(ms: number, launch: LaunchLabels): void
  /** From the client's own stamp. */
  clientLatency(ms: number, launch: LaunchLabels): void
  /** From the Sandbox's creation to its Ready. */
  creationLatency(ms: number, launch: LaunchLabels & { namespace: string }): void
}

/** Metrics of the manager under upstream's names, labels and buckets. */
export function claimMetrics(registry: Registry): ClaimMetrics {
  const registers = [registry]
  const histogram = (name: string, help: string, buckets: number[], labelNames: string[]): Histogram =>
    new Histogram({ name, help, buckets, labelNames, registers })
  const launchLabels = ['launch_type', 'sandbox_template']
  const webhook = histogram(
    'agent_sandbox_claim_startup_latency_ms',
    'Milliseconds from the admission webhook seeing a SandboxClaim to its first Ready.',
    claimBuckets,
    launchLabels,
  )
  const controller = histogram(
    'agent_sandbox_claim_controller_startup_latency_ms',
    'Milliseconds from the controller seeing a SandboxClaim to its first Ready.',
    claimBuckets,
    launchLabels,
  )
  const client = histogram(
    'agent_sandbox_client_claim_startup_latency_ms',
    'Milliseconds from the client asking for a SandboxClaim to its first Ready.',
    claimBuckets,
    launchLabels,
  )
  const creation = histogram(
    'agent_sandbox_creation_latency_ms',
    'Milliseconds from the creation of a Sandbox to its Ready.',
    creationBuckets,
    ['namespace', ...launchLabels],
  )
  const created = new Counter({
    name: 'agent_sandbox_claim_creation_total',
    help: 'Sandboxes created or adopted for a SandboxClaim.',
    labelNames: ['namespace', 'sandbox_template', 'launch_type', 'warmpool_name', 'pod_condition', 'created_by'],
    registers,
  })
  const launch = ({ launchType, template }: LaunchLabels): Record<string, string> => ({
    launch_type: launchType,
    sandbox_template: template,
  })
  return {
    created: (claim) =>
      created.inc({
        ...launch(claim),
        namespace: claim.namespace,
        warmpool_name: claim.pool,
        pod_condition: claim.isReady ? 'ready' : 'not_ready',
        created_by: normalizeCreatedBy(claim.createdBy),
      }),
    webhookLatency: (ms, labelled) => webhook.observe(launch(labelled), Math.floor(ms)),
    controllerLatency: (ms, labelled) => controller.observe(launch(labelled), Math.floor(ms)),
    clientLatency: (ms, labelled) => client.observe(launch(labelled), Math.floor(ms)),
    creationLatency: (ms, labelled) =>
      creation.observe({ ...launch(labelled), namespace: labelled.namespace }, Math.floor(ms)),
  }
}

/** `agent_sandboxes`: counted from the store at every scrape, so it cannot drift. */
export function sandboxGauge(
  registry: Registry,
  list: () => Iterable<Stored<Sandbox>>,
  options: { withOperatingMode?: boolean } = {},
): void {
  const gauge: Gauge = new Gauge({
    name: 'agent_sandboxes',
    help: 'Sandboxes that exist, by state.',
    labelNames: [
      'namespace',
      'ready_condition',
      'expired',
      'launch_type',
      'sandbox_template',
      'owned_by',
      'created_by',
      ...(options.withOperatingMode ? ['operating_mode'] : []),
    ],
    registers: [registry],
    collect() {
      gauge.reset()
      for (const sandbox of list()) {
        const operating_mode = sandbox.spec.operatingMode === 'Suspended' ? 'Suspended' : 'Running'
        gauge.inc({ ...sandboxLabels(sandbox), ...(options.withOperatingMode && { operating_mode }) })
      }
    },
  })
}

export function sandboxLabels(sandbox: Stored<Sandbox>): Record<string, string> {
  const own = sandbox.metadata.labels ?? {}
  const conditions = sandbox.status?.conditions
  return {
    namespace: sandbox.metadata.namespace ?? '',
    ready_condition: String(isConditionTrue(conditions, 'Ready')),
    expired: String(findCondition(conditions, 'Ready')?.reason === 'SandboxExpired'),
    launch_type: own[labels.launchType] === 'warm' ? 'warm' : 'cold',
    sandbox_template: sandbox.metadata.annotations?.[annotations.templateRef] || 'unknown',
    owned_by: ownerLabel(sandbox),
    created_by: normalizeCreatedBy(own[labels.createdBy]),
  }
}

function ownerLabel(sandbox: Stored<Sandbox>): string {
  const controller = controllerOf(sandbox)
  if (isExtensionsOwner(controller, 'SandboxClaim')) return 'SandboxClaim'
  if (isExtensionsOwner(controller, 'SandboxWarmPool')) return 'SandboxWarmPool'
  return 'None'
}

export interface BuildInfo {
  version: string
  commit: string
  date: string
}

/** `agent_sandbox_build_info`: always 1, the build is in its labels. */
export function buildInfoGauge(registry: Registry, build: BuildInfo): void {
  const labelled = {
    git_version: build.version,
    git_commit: build.commit,
    build_date: build.date,
    go_version: `node${process.versions.node}`,
    compiler: `v8 ${process.versions.v8}`,
    platform: `${process.platform}/${process.arch}`,
  }
  const gauge = new Gauge({
    name: 'agent_sandbox_build_info',
    help: 'The build that runs; constant 1.',
    labelNames: Object.keys(labelled),
    registers: [registry],
  })
  gauge.set(labelled, 1)
}

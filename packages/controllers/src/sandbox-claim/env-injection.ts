import type { ClaimEnvVar, Container, EnvVar, PodSpec, SandboxTemplate } from '@corral/resources'
import { quote } from '../shared/ownership.js'
import { ClaimProblem } from './claim-problem.js'

type Policy = SandboxTemplate['spec']['envVarsInjectionPolicy']

/** The pod spec with the claim's variables in it, as far as the template's policy allows. */
export function injectEnv(spec: PodSpec, env: readonly ClaimEnvVar[], policy: Policy): PodSpec {
  if (env.length === 0) return spec
  if (policy !== 'Allowed' && policy !== 'Overrides') {
    throw rejected('environment variable injection is not allowed by the template policy')
  }
  const named = new Map<string, ClaimEnvVar[]>()
  for (const variable of env) {
    if (variable.containerName)
      named.set(variable.containerName, [...(named.get(variable.containerName) ?? []), variable])
  }
  const unnamed = env.filter((variable) => !variable.containerName)
  const initContainers = spec.initContainers ?? []
  const containers = spec.containers ?? []
  const known = new Set([...initContainers, ...containers].map((container) => container.name))
  for (const [target, [first]] of named) {
    if (known.has(target)) continue
    throw new Error(
      `target container ${quote(target)} not found in template for environment variable ${quote(first?.name ?? '')}`,
    )
  }
  const into = (container: Container, index: number, isRegular: boolean): Container => {
    const wanted = [...(named.get(container.name) ?? []), ...(isRegular && index === 0 ? unnamed : [])]
    return wanted.length > 0 ? injectInto(container, wanted, policy) : container
  }
  return {
    ...spec,
    ...(spec.initContainers && {
      initContainers: initContainers.map((container, index) => into(container, index, false)),
    }),
    containers: containers.map((container, index) => into(container, index, true)),
  }
}

function injectInto(container: Container, wanted: readonly ClaimEnvVar[], policy: Policy): Container {
  if (policy === 'Allowed' && (container.envFrom?.length ?? 0) > 0) {
    throw rejected(
      `container ${quote(container.name)} uses EnvFrom sources; Allowed policy cannot safely prevent overriding EnvFrom-provided variables`,
    )
  }
  const env: EnvVar[] = [...(container.env ?? [])]
  for (const { name, value } of wanted) {
    const at = env.findIndex((variable) => variable.name === name)
    if (at >= 0 && policy !== 'Overrides') {
      throw new Error(`environment variable override is not allowed by the template policy for variable ${quote(name)}`)
    }
    if (at >= 0) env[at] = { name, value }
    else env.push({ name, value })
  }
  return { ...container, env }
}

function rejected(detail: string): ClaimProblem {
  return new ClaimProblem('EnvVarsInjectionRejected', `environment variable injection rejected: ${detail}`)
}

import type { Container, PodSpec, ServicePort } from '@corral/resources'

interface Port {
  port: number
  protocol: string
  name?: string
}

/**
 * The Service's ports: one per container port and protocol, of the containers and the sidecars, ordered by number. A
 * name goes to the port that used it first; the nameless are called `p-<port>-<protocol>`.
 */
export function servicePorts(spec: PodSpec): ServicePort[] {
  const ports = new Map<string, Port>()
  const taken = new Set<string>()
  for (const container of exposing(spec)) {
    for (const { containerPort, protocol = 'TCP', name } of container.ports ?? []) {
      if (!containerPort) continue
      const key = `${containerPort}/${protocol}`
      const port = ports.get(key) ?? { port: containerPort, protocol }
      ports.set(key, port)
      if (!name || port.name || taken.has(name)) continue
      port.name = name
      taken.add(name)
    }
  }
  const ordered = [...ports.values()].sort((a, b) => a.port - b.port || (a.protocol < b.protocol ? -1 : 1))
  return ordered.map(({ port, protocol, name = freeName(port, protocol, taken) }) => {
    taken.add(name)
    return { name, protocol, port, targetPort: port }
  })
}

/** Whether two lists offer the same ports, in the same order. Other fields are not compared. */
export function samePorts(a: readonly ServicePort[], b: readonly ServicePort[]): boolean {
  if (a.length !== b.length) return false
  return a.every((port, at) => {
    const other = b[at]
    return (
      port.name === other?.name &&
      (port.protocol ?? 'TCP') === (other?.protocol ?? 'TCP') &&
      port.port === other?.port &&
      port.targetPort === other?.targetPort
    )
  })
}

/** Init containers with restartPolicy Always run beside the others; ordinary ones are gone by the time a client connects. */
function exposing(spec: PodSpec): Container[] {
  const sidecars = (spec.initContainers ?? []).filter((container) => container.restartPolicy === 'Always')
  return [...(spec.containers ?? []), ...sidecars]
}

function freeName(port: number, protocol: string, taken: ReadonlySet<string>): string {
  const base = `p-${port}-${protocol.toLowerCase()}`
  if (!taken.has(base)) return base
  let suffix = 2
  while (taken.has(`${base}-${suffix}`)) suffix += 1
  return `${base}-${suffix}`
}

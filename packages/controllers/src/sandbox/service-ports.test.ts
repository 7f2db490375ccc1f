import type { Container } from '@corral/resources'
import { describe, expect, it } from 'vitest'
import { samePorts, servicePorts } from './service-ports.js'

const container = (ports: Container['ports'], change: Partial<Container> = {}): Container => ({
  name: 'c',
  image: 'x',
  ...(ports && { ports }),
  ...change,
})

describe('ports of the Service', () => {
  it.each([
    {
      when: 'scenario 59: numbers, names and protocols mix',
      containers: [
        container([
          { containerPort: 9090, protocol: 'UDP' },
          { containerPort: 8080 },
          { containerPort: 8080, name: 'http' },
          { containerPort: 9090 },
          { containerPort: 0 },
        ]),
      ],
      names: ['http 8080 TCP', 'p-9090-tcp 9090 TCP', 'p-9090-udp 9090 UDP'],
    },
    {
      when: 'scenario 60: two containers use one name',
      containers: [
        container([{ containerPort: 9090, name: 'http' }]),
        container([{ containerPort: 8080, name: 'http' }]),
      ],
      names: ['p-8080-tcp 8080 TCP', 'http 9090 TCP'],
    },
    {
      when: 'scenario 61: a name looks like a generated one',
      containers: [container([{ containerPort: 9090, name: 'p-8080-tcp' }, { containerPort: 8080 }])],
      names: ['p-8080-tcp-2 8080 TCP', 'p-8080-tcp 9090 TCP'],
    },
    {
      when: 'scenario 62: init containers count only as sidecars',
      containers: [container(undefined)],
      initContainers: [
        container([{ containerPort: 7000 }], { restartPolicy: 'Always' }),
        container([{ containerPort: 6000 }]),
      ],
      names: ['p-7000-tcp 7000 TCP'],
    },
    { when: 'there are none', containers: [container(undefined)], names: [] },
  ])('$when', ({ containers, initContainers, names }) => {
    const ports = servicePorts({ containers, ...(initContainers && { initContainers }) })
    expect(ports.map(({ name, port, protocol }) => `${name} ${port} ${protocol}`)).toEqual(names)
  })

  it('scenario 64: fields beyond name, protocol, port and target do not make a difference', () => {
    const port = { name: 'http', protocol: 'TCP', port: 80, targetPort: 80 }
    expect(samePorts([{ ...port, appProtocol: 'h2c' }], [port])).toBe(true)
    for (const other of [{ targetPort: 81 }, { port: 81 }, { name: 'x' }, { protocol: 'UDP' }])
      expect([other, samePorts([{ ...port, ...other }], [port])]).toEqual([other, false])
    const { protocol: _tcp, ...plain } = port
    expect([samePorts([plain], [port]), samePorts([port], [plain]), samePorts([port], [])]).toEqual([true, true, false])
  })
})

import { networkInterfaces } from 'node:os'
import { describe, expect, it } from 'vitest'
import { planNetwork, wildcardPorts } from './network-plan.js'
import { mayReach } from './reachable-address.js'

const podIP = '100.64.0.7'

describe('planNetwork', () => {
  it('gives a pod without egress its address and nothing to talk to', () => {
    const plan = planNetwork({ podIP, egress: [], services: [] })
    expect(plan).toMatchObject({ routes: ['100.64.0.7/32'], dns: [], listeners: [] })
  })

  it('gives each name one address and each of its ports a listener on it', () => {
    const egress = [
      { host: 'Packages.Example.com.', port: 443 },
      { host: 'packages.example.com', port: 80 },
      { host: 'other.example.com', port: 443 },
    ]
    const plan = planNetwork({ podIP, egress, services: [] })
    expect([...plan.names]).toEqual([
      ['packages.example.com', '198.18.0.2'],
      ['other.example.com', '198.18.0.3'],
    ])
    expect(plan.listeners).toEqual([
      { address: '198.18.0.2', port: 443 },
      { address: '198.18.0.2', port: 80 },
      { address: '198.18.0.3', port: 443 },
    ])
  })

  it('lets only a written address lead to this machine, never a name', () => {
    const egress = [
      { host: '127.0.0.1', port: 9000 },
      { host: 'localhost', port: 9001 },
      { host: 'sneaky.example.com', port: 9002 },
    ]
    const { destinations } = planNetwork({ podIP, egress, services: [] })
    expect([...destinations.values()].map((each) => each.kind === 'host' && each.mayBeLoopback)).toEqual([
      true,
      true,
      false,
    ])
  })
})

describe('wildcardPorts', () => {
  const rules = [
    { host: '*.example.org', port: 443 },
    { host: '*.example.org', port: 22 },
  ]
  it.each([
    { name: 'a.example.org', ports: [443, 22] },
    { name: 'A.B.Example.Org.', ports: [443, 22] },
    { name: 'example.org', ports: [] },
    { name: 'evilexample.org', ports: [] },
    { name: 'example.org.evil.com', ports: [] },
  ])('allows $name on $ports', ({ name, ports }) => {
    expect(wildcardPorts(name, rules)).toEqual(ports)
  })
})

describe('mayReach', () => {
  it.each([
    { address: '127.0.0.1', reachable: false },
    { address: '127.8.8.8', reachable: false },
    { address: '::1', reachable: false },
    { address: '::ffff:127.0.0.1', reachable: false },
    { address: '169.254.169.254', reachable: false },
    { address: '0.0.0.0', reachable: false },
    { address: '168.63.129.16', reachable: false },
    { address: '192.0.0.192', reachable: false },
    { address: 'fd00:ec2::254', reachable: false },
    { address: 'fd20:ce::254', reachable: false },
    { address: 'fd00:c1::a9fe:a9fe', reachable: false },
    { address: 'fd00:42::42', reachable: false },
    { address: 'fd00:42::43', reachable: true },
    { address: '::127.0.0.1', reachable: false },
    { address: '::ffff:0:127.0.0.1', reachable: false },
    { address: '64:ff9b:1::127.0.0.1', reachable: false },
    { address: 'fe80::1%eth0', reachable: false },
    { address: '2002:7f00:1::', reachable: false },
    { address: '64:ff9b::7f00:1', reachable: false },
    { address: '64:ff9b::169.254.169.254', reachable: false },
    { address: '64:ff9b::', reachable: false },
    { address: '64:ff9b::8.8.8.8', reachable: true },
    { address: '100.64.3.4', reachable: false },
    { address: '239.1.1.1', reachable: false },
    { address: 'not an address', reachable: false },
    { address: '93.184.215.14', reachable: true },
    { address: '10.0.0.8', reachable: true },
    { address: '2606:2800:21f::1', reachable: true },
  ])('a name leading to $address: $reachable', ({ address, reachable }) => {
    expect(mayReach(address)).toBe(reachable)
  })

  it('is not led back to this machine by any of its own addresses, written in any way', () => {
    const own = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
    expect(own.filter(({ address }) => mayReach(address))).toEqual([])
    const mapped = own.filter(({ family }) => family === 'IPv4').map(({ address }) => `::ffff:${address}`)
    expect(mapped.filter(mayReach)).toEqual([])
  })
})

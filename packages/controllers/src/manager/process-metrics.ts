import { readFileSync } from 'node:fs'
import { Counter, Gauge, type Registry } from 'prom-client'

/** Figures about this process that Go's library shows and Node's does not. They need Linux; elsewhere they stay away. */
export function processMetrics(registry: Registry): void {
  const registers = [registry]
  const limit = new Gauge({
    name: 'process_virtual_memory_max_bytes',
    help: 'Largest address space this process may have; -1 for no limit.',
    registers,
    collect() {
      const text = read('/proc/self/limits')
      const value = /^Max address space\s+(\S+)/m.exec(text)?.[1]
      if (value) limit.set(value === 'unlimited' ? -1 : Number(value))
    },
  })
  traffic(registers, 'process_network_receive_bytes_total', 'Bytes received in its network namespace.', 'InOctets')
  traffic(registers, 'process_network_transmit_bytes_total', 'Bytes sent in its network namespace.', 'OutOctets')
}

function traffic(registers: Registry[], name: string, help: string, column: string): void {
  const counter = new Counter({
    name,
    help,
    registers,
    collect() {
      counter.reset()
      counter.inc(extendedIpFigure(read('/proc/self/net/netstat'), column))
    },
  })
}

/** A figure of the table that consists of a line of names and a line of numbers, both called `IpExt`. */
function extendedIpFigure(table: string, column: string): number {
  const [names = [], numbers = []] = table
    .split('\n')
    .filter((line) => line.startsWith('IpExt:'))
    .map((line) => line.split(' '))
  return Number(numbers[names.indexOf(column)] ?? 0)
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return '' // not Linux
  }
}

import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import { printAddress, scanAddress } from '../../../src/dns/text/address.ts'
import type { Client } from '../../../src/egress/agent/client.ts'
import { ClientTable } from '../../../src/egress/agent/client-table.ts'
import { clientOf } from '../../support/egress-client.ts'

function at(table: ClientTable, text: string, offset = 0): Client | undefined {
  const { bytes, family } = scanAddress(text)!
  const buffer = new Uint8Array(offset + bytes.length)
  buffer.set(bytes, offset)
  return table.at(buffer, offset, family)
}

t.test('a client is found by each of its addresses', async (t) => {
  const a = clientOf('a', '10.1.0.1 2001:db8::1', [])
  const b = clientOf('b', '10.1.0.2', [])
  const table = new ClientTable([a, b])
  t.equal(at(table, '10.1.0.1'), a)
  t.equal(at(table, '2001:db8::1', 3), a)
  t.equal(at(table, '10.1.0.2', 7), b)
  t.equal(at(table, '10.1.0.3'), undefined)
  t.equal(at(table, '2001:db8::2'), undefined)
  t.equal(at(new ClientTable([]), '10.1.0.1'), undefined)
  t.equal(at(new ClientTable([]), '::'), undefined)
})

t.test('many clients', async (t) => {
  const random = new Random(3)
  const clients = new Map<string, Client>()
  for (let i = 0; i < 3000; i++) {
    const octets = new Uint8Array(16)
    for (let k = 0; k < 16; k++) octets[k] = k < 12 ? 0x20 : random.below(256)
    const ipv4 = `10.${i >> 8}.${i & 255}.1`
    const ipv6 = printAddress(octets, 2)
    const client = clientOf(String(i), clients.has(ipv6) ? ipv4 : `${ipv4} ${ipv6}`, [])
    for (const address of client.addresses) clients.set(address, client)
  }
  const table = new ClientTable([...new Set(clients.values())])
  let wrong = 0
  for (const [address, client] of clients) if (at(table, address) !== client) wrong++
  for (let i = 0; i < 3000; i++) if (at(table, `10.${i >> 8}.${i & 255}.2`) !== undefined) wrong++
  t.equal(wrong, 0)
})

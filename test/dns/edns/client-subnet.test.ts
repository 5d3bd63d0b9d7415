import t from 'tap'
import {
  composeClientSubnet,
  parseClientSubnet,
  printClientSubnet,
} from '../../../src/dns/edns/client-subnet.ts'
import { scanCidr } from '../../../src/dns/text/address.ts'

function hex(octets: Uint8Array): string {
  return Buffer.from(octets).toString('hex')
}

t.test('composeClientSubnet sends no more of the address than the prefix needs', (t) => {
  const table: { given: string; want: string }[] = [
    { given: '81.2.69.160/24', want: '00011800510245' },
    { given: '81.2.69.255/25', want: '0001190051024580' },
    { given: '0.0.0.0/0', want: '00010000' },
    { given: '192.0.2.1/32', want: '00012000c0000201' },
    { given: '2001:db8::/32', want: '0002200020010db8' },
  ]
  for (const { given, want } of table)
    t.equal(hex(composeClientSubnet(scanCidr(given)!)), want, given)
  t.end()
})

t.test('parseClientSubnet', (t) => {
  const table: { given: string; want: string | undefined }[] = [
    { given: '00011810510245', want: '81.2.69.0/24/16' },
    { given: '00010000', want: '0.0.0.0/0/0' },
    { given: '0002203020010db8', want: '2001:db8::/32/48' },
    { given: '', want: undefined },
    { given: '000118', want: undefined },
    { given: '00030000', want: undefined },
    { given: '01010000', want: undefined },
    { given: '0001210051024501', want: undefined },
    { given: '00011821510245', want: undefined },
    { given: '0001180051024500', want: undefined },
    { given: '000118005102', want: undefined },
    { given: '00011700510245', want: undefined },
  ]
  for (const { given, want } of table) {
    const subnet = parseClientSubnet(Buffer.from(given, 'hex'))
    t.equal(subnet && printClientSubnet(subnet), want, `'${given}' gives ${want}`)
  }
  t.end()
})

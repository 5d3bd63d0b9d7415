import type { NetworkInterfaceInfo } from 'node:os'
import t from 'tap'
import { listAddresses } from '../../../src/plugins/bind/bind.ts'
import { bind } from '../../../src/plugins/bind/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'

function info(address: string): NetworkInterfaceInfo {
  const rest = { netmask: '', mac: '', internal: false, cidr: null }
  return address.includes(':')
    ? { address, family: 'IPv6', scopeid: 0, ...rest }
    : { address, family: 'IPv4', ...rest }
}

const interfaces = {
  eth0: [info('192.0.2.1'), info('2001:db8::1'), info('fe80::1')],
  lo: [info('127.0.0.1'), info('::1')],
}

t.test('the addresses that an argument of bind names', async (t) => {
  const table = [
    { name: 'an IPv4 address', given: '192.0.2.7', want: ['192.0.2.7'] },
    { name: 'an IPv6 address in canonical form', given: '2001:DB8:0::7', want: ['2001:db8::7'] },
    { name: 'an IPv6 address with a zone', given: 'fe80::2%eth0', want: ['fe80::2%eth0'] },
    {
      name: 'an interface, its link-local addresses with their zone',
      given: 'eth0',
      want: ['192.0.2.1', '2001:db8::1', 'fe80::1%eth0'],
    },
    { name: 'no interface', given: 'eth1', want: undefined },
    { name: 'a property of every object', given: 'constructor', want: undefined },
    { name: 'a host name', given: 'example.org', want: undefined },
  ]
  for (const { name, given, want } of table)
    t.strictSame(listAddresses(given, interfaces), want, name)
})

t.test('several lines add up', async (t) => {
  const { block } = new SetUp(bind, 'bind 127.0.0.1 ::1\nbind 192.0.2.1')
  t.strictSame(block.listenHosts, ['127.0.0.1', '::1', '192.0.2.1'])
})

t.test('except concerns its own line', async (t) => {
  const { block } = new SetUp(bind, 'bind 127.0.0.1 ::1 {\n except ::1\n}\nbind 127.0.0.2')
  t.strictSame(block.listenHosts, ['127.0.0.1', '127.0.0.2'])
})

t.test('an address that except removes may be there twice', async (t) => {
  const { block } = new SetUp(bind, 'bind 127.0.0.1 127.0.0.2 127.0.0.1 {\n except 127.0.0.1\n}')
  t.strictSame(block.listenHosts, ['127.0.0.2'])
})

t.test('an address twice', async (t) => {
  const table = [
    { given: 'bind 127.0.0.1 127.0.0.1', line: 1 },
    { given: 'bind 127.0.0.1\nbind ::1 127.0.0.1 {\n except ::1\n}', line: 2 },
    { given: 'bind lo 127.0.0.1', line: 1 },
    { given: 'bind 127.0.0.1 {\n except ::1\n}\nbind lo', line: 4 },
    { given: 'bind lo lo', line: 1 },
  ]
  for (const { given, line } of table) {
    const message = /^bind has 127\.0\.0\.1 twice in this block/
    t.throws(() => new SetUp(bind, given), { message, position: { line } }, given)
  }
  t.match(setupError(bind, 'bind ::1 0:0::1'), 'bind has ::1 twice')
})

t.test('a line whose addresses are all excepted adds none', async (t) => {
  const { block } = new SetUp(bind, 'bind 127.0.0.1 {\n except 127.0.0.1\n}\nbind ::1')
  t.strictSame(block.listenHosts, ['::1'])
})

t.test('bad lines', async (t) => {
  const table = [
    { given: 'bind', want: 'at least one address or interface name is expected' },
    { given: 'bind 1.2.3', want: 'not a valid IP address or interface name: "1.2.3"' },
    {
      given: 'bind 127.0.0.1 {\n except\n}',
      want: 'at least one address or interface must be given to except subdirective',
    },
    { given: 'bind 127.0.0.1 {\n only x\n}', want: 'invalid option "only"' },
    {
      given: 'bind 127.0.0.1 {\n except nothing0\n}',
      want: 'not a valid IP address or interface name: "nothing0"',
    },
    {
      given: 'bind 127.0.0.1 {\n except lo\n}',
      want: '"except" removes all addresses; leave one, or remove the block',
    },
  ]
  for (const { given, want } of table) t.match(setupError(bind, given), want, given)
})

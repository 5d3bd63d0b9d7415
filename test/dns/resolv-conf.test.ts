import t from 'tap'
import { printHostPort } from '../../src/dns/host-port.ts'
import { printName } from '../../src/dns/name/name.ts'
import { scanResolvConf } from '../../src/dns/resolv-conf.ts'

t.test('the search path of a file', async (t) => {
  const table: [text: string, want: string[]][] = [
    ['', []],
    ['search A.example b.\n', ['a.example.', 'b.']],
    ['search a\nsearch b\tc\n', ['b.', 'c.']],
    ['domain a b\n', ['a.']],
    ['search a\ndomain b', ['b.']],
    ['#search a\n;search b\noptions ndots:5\nnameserver 192.0.2.1\n', []],
    ['search a..b c\r\n', ['c.']],
  ]
  for (const [text, want] of table) {
    t.strictSame(
      scanResolvConf(text).search.map((name) => printName(name)),
      want,
      text,
    )
  }
})

t.test('the servers of a file, and how they are asked', async (t) => {
  const table: [text: string, servers: string[], timeoutMs: number, attempts: number][] = [
    ['', [], 5000, 2],
    [
      'nameserver 192.0.2.1\r\n\tnameserver  ::1 # comment\n',
      ['192.0.2.1:53', '[::1]:53'],
      5000,
      2,
    ],
    [
      'nameserver fe80::1%eth0\nnameserver ns.example\nnameserver\n',
      ['[fe80::1%eth0]:53'],
      5000,
      2,
    ],
    [
      'nameserver 192.0.2.2:1053\nnameserver [2001:db8::2]:1053\nnameserver [2001:db8::3]\n',
      ['192.0.2.2:1053', '[2001:db8::2]:1053', '[2001:db8::3]:53'],
      5000,
      2,
    ],
    ['nameserver ns.example:53\nnameserver 192.0.2.1:0\nnameserver 192.0.2.1:65536\n', [], 5000, 2],
    ['#nameserver 192.0.2.1\noptions ndots:5 timeout:3 attempts:4\n', [], 3000, 4],
    ['options timeout:0 attempts:99 timeout:31\noptions attempts:x\n', [], 30_000, 5],
  ]
  for (const [text, servers, timeoutMs, attempts] of table) {
    const found = scanResolvConf(text)
    t.strictSame(found.servers.map(printHostPort), servers, text)
    t.strictSame([found.timeoutMs, found.attempts], [timeoutMs, attempts], text)
  }
})

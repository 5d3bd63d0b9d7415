import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import { BoundedLines } from '../../../src/node/conntrack/bounded-lines.ts'
import { scanFlow } from '../../../src/node/conntrack/scan-flow.ts'

t.test('the original direction of a connection', async (t) => {
  const table = [
    [
      'tcp      6 431999 ESTABLISHED src=10.1.0.1 dst=192.0.2.1 sport=41608 dport=443 src=192.0.2.1 dst=198.51.100.1 sport=443 dport=41608 [ASSURED] mark=0 use=1',
      '10.1.0.1 192.0.2.1',
    ],
    [
      '    [NEW] udp      17 30 src=2001:db8::1 dst=2001:DB8:0:0::2 sport=51134 dport=1234 [UNREPLIED] src=2001:db8::2 dst=2001:db8::1 sport=1234 dport=51134',
      '2001:db8::1 2001:db8::2',
    ],
    [
      'icmp     1 29 src=10.1.0.1 dst=192.0.2.1 type=8 code=0 id=7 src=192.0.2.1 dst=10.1.0.1',
      '10.1.0.1 192.0.2.1',
    ],
    ['unknown  2 599 src=10.1.0.1 dst=192.0.2.1', '10.1.0.1 192.0.2.1'],
    [
      'ipv6     10 tcp      6 5 CLOSE src=2001:db8::1 dst=::ffff:192.0.2.1 sport=1 dport=2',
      '2001:db8::1 ::ffff:192.0.2.1',
    ],
    ['tcp 6 5 dst=192.0.2.1 sport=1', ''],
    ['tcp 6 5 src=10.1.0.1 sport=1', ''],
    ['tcp 6 5 src=10.1.0.1 dst=1:2 sport=1', ''],
    ['', ''],
  ]
  for (const [line, want] of table) {
    const flow = scanFlow(line!)
    t.equal(flow === undefined ? '' : `${flow.source} ${flow.destination}`, want, line ?? '')
  }
})

t.test('lines of a stream', async (t) => {
  const text = 'one\ntwo\n\nlonger than ten\nten letter\nend'
  const random = new Random(7)
  for (let round = 0; round < 100; round++) {
    const lines: string[] = []
    const splitter = new BoundedLines(10, (line) => lines.push(line))
    for (let at = 0; at < text.length; ) {
      const next = at + 1 + random.below(round === 0 ? 100 : 8)
      splitter.add(text.slice(at, next))
      at = next
    }
    t.strictSame(lines, ['one', 'two', '', 'ten letter'])
    t.equal(splitter.dropped, 1)
    t.equal(splitter.isWhole, false)
    splitter.add('\n')
    t.equal(splitter.isWhole, true)
    t.equal(lines.at(-1), 'end')
  }
})

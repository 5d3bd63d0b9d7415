import t from 'tap'
import { Random } from '../../../../src/base/random.ts'
import { BoundedLines } from '../../../../src/egress/agent/conntrack/bounded-lines.ts'
import { scanFlow } from '../../../../src/egress/agent/conntrack/scan-flow.ts'

t.test('both directions of a connection', async (t) => {
  const table = [
    [
      'tcp      6 431999 ESTABLISHED src=10.1.0.1 dst=192.0.2.1 sport=41608 dport=443 src=192.0.2.1 dst=198.51.100.1 sport=443 dport=41608 [ASSURED] mark=0 use=1',
      '6 10.1.0.1 192.0.2.1 443 192.0.2.1 443',
    ],
    [
      'udp      17 9 src=10.1.0.1 dst=10.96.0.10 sport=1 dport=53 src=192.0.2.7 dst=10.1.0.1 sport=5353 dport=1 [ASSURED] mark=0',
      '17 10.1.0.1 10.96.0.10 53 192.0.2.7 5353',
    ],
    [
      '[DESTROY] udp      17 src=10.1.0.1 dst=192.0.2.1 sport=1 dport=2 src=192.0.2.1 dst=10.1.0.1 sport=2 dport=1',
      '17 10.1.0.1 192.0.2.1 2 192.0.2.1 2',
    ],
    [
      '    [NEW] udp      17 30 src=2001:db8::1 dst=2001:DB8:0:0::2 sport=51134 dport=1234 [UNREPLIED] src=2001:db8::2 dst=2001:db8::1 sport=1234 dport=51134',
      '17 2001:db8::1 2001:db8::2 1234 2001:db8::2 1234',
    ],
    [
      'icmp     1 29 src=10.1.0.1 dst=192.0.2.1 type=8 code=0 id=7 src=192.0.2.1 dst=10.1.0.1',
      '1 10.1.0.1 192.0.2.1 0 192.0.2.1 0',
    ],
    ['unknown  2 599 src=10.1.0.1 dst=192.0.2.1', '2 10.1.0.1 192.0.2.1 0 192.0.2.1 0'],
    [
      'ipv6     10 tcp      6 5 CLOSE src=2001:db8::1 dst=::ffff:192.0.2.1 sport=1 dport=2',
      '6 2001:db8::1 ::ffff:192.0.2.1 2 ::ffff:192.0.2.1 2 ended',
    ],
    [
      'tcp      6 119 TIME_WAIT src=10.1.0.1 dst=192.0.2.1 sport=4 dport=443 src=192.0.2.1 dst=10.1.0.1 sport=443 dport=4 [ASSURED]',
      '6 10.1.0.1 192.0.2.1 443 192.0.2.1 443 ended',
    ],
    [
      'tcp      6 59 CLOSE_WAIT src=10.1.0.1 dst=192.0.2.1 sport=4 dport=443 src=192.0.2.1 dst=10.1.0.1 sport=443 dport=4',
      '6 10.1.0.1 192.0.2.1 443 192.0.2.1 443',
    ],
    ['tcp 6 5 dst=192.0.2.1 sport=1', ''],
    ['tcp 6 5 src=10.1.0.1 sport=1', ''],
    ['tcp 6 5 src=10.1.0.1 dst=1:2 sport=1', ''],
    ['src=10.1.0.1 dst=192.0.2.1 sport=1', ''],
    ['', ''],
  ]
  for (const [line, want] of table) {
    const flow = scanFlow(line!)
    const { protocol, source, destination, port, target, targetPort } = flow ?? {}
    const parts = [protocol, source, destination, port, target, targetPort]
    if (flow?.isOpen === false) parts.push('ended')
    t.equal(flow === undefined ? '' : parts.join(' '), want, line ?? '')
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

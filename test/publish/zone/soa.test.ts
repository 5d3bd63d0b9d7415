import t from 'tap'
import { RRType } from '../../../src/dns/iana/types.ts'
import { printName, scanName } from '../../../src/dns/name/name.ts'
import { printRdata } from '../../../src/dns/rdata/index.ts'
import {
  addToSerial,
  composeSoa,
  isSerialAfter,
  nextSerial,
  scanMailbox,
} from '../../../src/publish/zone/soa.ts'

const MAILBOXES: readonly { given: string; want: string | undefined }[] = [
  { given: 'dns.admin@example.com', want: 'dns\\.admin.example.com.' },
  { given: '  admin@example.com  ', want: 'admin.example.com.' },
  { given: 'my.dns.admin@example.com', want: 'my\\.dns\\.admin.example.com.' },
  { given: 'adminexample.com', want: undefined },
  { given: '@example.com', want: undefined },
  { given: 'admin@', want: undefined },
  { given: 'a@b@example.com', want: undefined },
]

t.test('an e-mail address becomes a mailbox name', (t) => {
  for (const { given, want } of MAILBOXES) {
    const name = scanMailbox(given)
    t.equal(name === undefined ? undefined : printName(name), want, given)
  }
  t.end()
})

t.test('the SOA has the timers of every such zone', (t) => {
  const rdata = composeSoa(
    scanName('ns1.k.example.com.')!,
    scanName('hostmaster.k.example.com.')!,
    4000000000,
  )
  t.equal(
    printRdata(RRType.SOA, rdata),
    'ns1.k.example.com. hostmaster.k.example.com. 4000000000 7200 1800 86400 60',
  )
  t.end()
})

t.test('the serial after the last one is in front of it by RFC 1982', (t) => {
  t.equal(nextSerial(0xffffffff), 1)
  t.equal(nextSerial(1), 2)
  t.equal(addToSerial(0xffffffff, 1000), 999)
  t.equal(addToSerial(0xfffffff0, 16), 1, 'never 0')
  for (const [a, b] of [
    [2, 1],
    [1, 0xffffffff],
    [0x80000000, 1],
  ] as const) {
    t.ok(isSerialAfter(a, b), `${a} after ${b}`)
    t.notOk(isSerialAfter(b, a), `${b} after ${a}`)
  }
  t.notOk(isSerialAfter(7, 7))
  t.end()
})

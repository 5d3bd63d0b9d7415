import fc from 'fast-check'
import t from 'tap'
import { RRType } from '../../src/dns/iana/types.ts'
import { printName, scanName } from '../../src/dns/name/name.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import { composeSoa, nextSerial, SerialBook, scanMailbox } from '../../src/record/soa.ts'

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

t.test('a serial starts at the time, grows with content and with nothing else', (t) => {
  const property = fc.property(
    fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1 }),
    (digests) => {
      const book = new SerialBook()
      let last = book.serialFor('z', digests[0]!, 1_800_000_000_500)
      if (last !== 1_800_000_000) return false
      for (let i = 1; i < digests.length; i++) {
        const serial = book.serialFor('z', digests[i]!, 1_900_000_000_000)
        const want = digests[i] === digests[i - 1] ? last : last + 1
        if (serial !== want) return false
        last = serial
      }
      return true
    },
  )
  fc.assert(property, { seed: 5, numRuns: 200 })
  t.end()
})

t.test('the serial after the last one is in front of it by RFC 1982', (t) => {
  t.equal(nextSerial(0xffffffff), 1)
  t.equal(nextSerial(1), 2)
  t.end()
})

import t from 'tap'
import {
  composeNsec,
  composeNsec3,
  composeNsec3Param,
} from '../../../src/dns/dnssec/denial-rdata.ts'
import { nsec3NextLabel } from '../../../src/dns/dnssec/nsec3.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { printRdata } from '../../../src/dns/rdata/index.ts'

t.test('rdata of denial in presentation form', (t) => {
  const types = [RRType.RRSIG, RRType.A, RRType.CAA]
  t.equal(
    printRdata(RRType.NSEC, composeNsec(scanName('b.example.')!, types)),
    'b.example. A RRSIG CAA',
  )
  t.equal(printRdata(RRType.NSEC3PARAM, composeNsec3Param()), '1 0 0 -')
  const hash = '0p9mhaveqvm6t7vbl5lop2u3t2rp3tom'
  const label = Buffer.from(` ${hash}`, 'latin1')
  for (const isOptOut of [false, true]) {
    const rdata = composeNsec3(label, types, { isOptOut })
    const text = printRdata(RRType.NSEC3, rdata).toLowerCase()
    t.equal(text, `1 ${isOptOut ? 1 : 0} 0 - ${hash} a rrsig caa`)
    t.same(nsec3NextLabel(rdata), label)
  }
  t.end()
})

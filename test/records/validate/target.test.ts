import t from 'tap'
import { RECORD_TYPES, scanTarget } from '../../../src/records/validate/target.ts'

const ADDRESSES: readonly (readonly [type: string, target: string])[] = [
  ['CNAME', '192.0.2.1'],
  ['CNAME', '192.0.2.1.'],
  ['NS', '2001:db8::1'],
  ['PTR', '192.0.2.1'],
  ['MX', '10 192.0.2.1'],
  ['SRV', '1 2 443 2001:db8::1'],
  ['NAPTR', '10 20 "A" "SIP+D2U" "" 192.0.2.1.'],
  ['HTTPS', '1 192.0.2.1. alpn=h2'],
  ['SVCB', '0 192.0.2.1'],
]

const NAMES: readonly (readonly [type: string, target: string])[] = [
  ['CNAME', '1.2.0.192.in-addr.arpa'],
  ['MX', '0 .'],
  ['MX', '10 192.0.2.256'],
  ['SRV', '1 2 443 192.0.2'],
  ['NAPTR', '10 20 "U" "E2U+sip" "!^.*$!sip:192.0.2.1!" .'],
  ['HTTPS', '1 . ipv4hint=192.0.2.1 ipv6hint=2001:db8::1'],
  ['TXT', '192.0.2.1'],
]

t.test('an address is no name of a host', async (t) => {
  for (const [type, target] of ADDRESSES) {
    t.match(scanTarget(RECORD_TYPES.get(type)!, target), /address.*; a name is needed$/, target)
  }
  for (const [type, target] of NAMES) {
    t.not(typeof scanTarget(RECORD_TYPES.get(type)!, target), 'string', target)
  }
})

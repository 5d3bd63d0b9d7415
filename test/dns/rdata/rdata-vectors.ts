/** One piece of rdata in its three forms. */
export interface RdataVector {
  readonly type: string
  /** As a person may write it; names relative to example.org. */
  readonly text: string
  /** As we print it. */
  readonly printed: string
  readonly hex: string
}

/**
 * Taken from the RFCs of the types where they give one (RFC 1876 section 4, 3403, 4034 sections 2.3 to
 * 5.4, 4255, 5155 appendix A, 6698, 7553, 8976 appendix A.1, 9460 appendix D), else made up; all but the
 * escaped protocol list of RFC 9460, which it gets wrong, agree with ldns 1.8.3.
 */
export const rdataVectors: readonly RdataVector[] = [
  { type: 'A', text: '192.0.2.1', printed: '192.0.2.1', hex: 'c0000201' },
  {
    type: 'AAAA',
    text: '2001:db8::1',
    printed: '2001:db8::1',
    hex: '20010db8000000000000000000000001',
  },
  {
    type: 'NS',
    text: 'ns1.example.org.',
    printed: 'ns1.example.org.',
    hex: '036e7331076578616d706c65036f726700',
  },
  {
    type: 'CNAME',
    text: 'www',
    printed: 'www.example.org.',
    hex: '03777777076578616d706c65036f726700',
  },
  {
    type: 'PTR',
    text: 'host.example.org.',
    printed: 'host.example.org.',
    hex: '04686f7374076578616d706c65036f726700',
  },
  {
    type: 'SOA',
    text: 'ns1 hostmaster.example.org. 2026112101 2h 30m 2w 1h',
    printed: 'ns1.example.org. hostmaster.example.org. 2026112101 7200 1800 1209600 3600',
    hex: '036e7331076578616d706c65036f7267000a686f73746d6173746572076578616d706c65036f72670078c4046500001c20000007080012750000000e10',
  },
  {
    type: 'MX',
    text: '10 mail.example.org.',
    printed: '10 mail.example.org.',
    hex: '000a046d61696c076578616d706c65036f726700',
  },
  {
    type: 'TXT',
    text: '"hello world" "a\\"b\\\\c\\; \\200" bare',
    printed: '"hello world" "a\\"b\\\\c; \\200" "bare"',
    hex: '0b68656c6c6f20776f726c64086122625c633b20c80462617265',
  },
  { type: 'SPF', text: '"v=spf1 -all"', printed: '"v=spf1 -all"', hex: '0b763d73706631202d616c6c' },
  {
    type: 'SRV',
    text: '1 2 5060 sip.example.org.',
    printed: '1 2 5060 sip.example.org.',
    hex: '0001000213c403736970076578616d706c65036f726700',
  },
  {
    type: 'CAA',
    text: '128 issue "ca.example.net; account=230123"',
    printed: '128 issue "ca.example.net; account=230123"',
    hex: '8005697373756563612e6578616d706c652e6e65743b206163636f756e743d323330313233',
  },
  { type: 'CAA', text: '0 iodef ""', printed: '0 iodef ""', hex: '0005696f646566' },
  {
    type: 'NAPTR',
    text: '100 50 "s" "z3950+I2L+I2C" "" _z3950._tcp.gatech.edu.',
    printed: '100 50 "s" "z3950+I2L+I2C" "" _z3950._tcp.gatech.edu.',
    hex: '0064003201730d7a333935302b49324c2b49324300065f7a33393530045f746370066761746563680365647500',
  },
  {
    type: 'NAPTR',
    text: '100 10 "u" "E2U+sip" "!^.*$!sip:info@example.com!" .',
    printed: '100 10 "u" "E2U+sip" "!^.*$!sip:info@example.com!" .',
    hex: '0064000a0175074532552b7369701b215e2e2a24217369703a696e666f406578616d706c652e636f6d2100',
  },
  {
    type: 'DS',
    text: '60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118',
    printed: '60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118',
    hex: 'ec4505012bb183af5f22588179a53b0a98631fad1a292118',
  },
  {
    type: 'CDS',
    text: '60485 RSASHA1 1 2BB183AF5F22588179A5 3B0A98631FAD1A292118',
    printed: '60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118',
    hex: 'ec4505012bb183af5f22588179a53b0a98631fad1a292118',
  },
  { type: 'CDS', text: '0 0 0 00', printed: '0 0 0 00', hex: '0000000000' },
  {
    type: 'DNSKEY',
    text: '256 3 5 AQPSKmynfzW4kyBv015MUG2DeIQ3Cbl+BBZH4b/0PY1kxkmvHjcZc8nokfzj31GajIQKY+5CptLr3buXA10hWqTkF7H6RfoRqXQeogmMHfpftf6zMv1LyBUgia7za6ZEzOJBOztyvhjL742iU/TpPSEDhm2SNKLijfUppn1UaNvv4w==',
    printed:
      '256 3 5 AQPSKmynfzW4kyBv015MUG2DeIQ3Cbl+BBZH4b/0PY1kxkmvHjcZc8nokfzj31GajIQKY+5CptLr3buXA10hWqTkF7H6RfoRqXQeogmMHfpftf6zMv1LyBUgia7za6ZEzOJBOztyvhjL742iU/TpPSEDhm2SNKLijfUppn1UaNvv4w==',
    hex: '010003050103d22a6ca77f35b893206fd35e4c506d8378843709b97e041647e1bff43d8d64c649af1e371973c9e891fce3df519a8c840a63ee42a6d2ebddbb97035d215aa4e417b1fa45fa11a9741ea2098c1dfa5fb5feb332fd4bc8152089aef36ba644cce2413b3b72be18cbef8da253f4e93d2103866d9234a2e28df529a67d5468dbefe3',
  },
  { type: 'CDNSKEY', text: '0 3 0 AA==', printed: '0 3 0 AA==', hex: '0000030000' },
  {
    type: 'RRSIG',
    text: 'A 5 3 86400 20030322173103 20030220173103 2642 example.com. oJB1W6WNGv+ldvQ3WDG0MQkg5IEhjRip8WTrPYGv07h108dUKGMeDPKijVCHX3DDKdfb+v6oB9wfuh3DTJXUAfI/M0zmO/zz8bW0Rznl8O3tGNazPwQKkRN20XPXV6nwwfoXmJQbsLNrLfkGJ5D6fwFm8nN+6pBzeDQfsS3Ap3o=',
    printed:
      'A 5 3 86400 20030322173103 20030220173103 2642 example.com. oJB1W6WNGv+ldvQ3WDG0MQkg5IEhjRip8WTrPYGv07h108dUKGMeDPKijVCHX3DDKdfb+v6oB9wfuh3DTJXUAfI/M0zmO/zz8bW0Rznl8O3tGNazPwQKkRN20XPXV6nwwfoXmJQbsLNrLfkGJ5D6fwFm8nN+6pBzeDQfsS3Ap3o=',
    hex: '00010503000151803e7c9dd73e5510d70a52076578616d706c6503636f6d00a090755ba58d1affa576f4375831b4310920e481218d18a9f164eb3d81afd3b875d3c75428631e0cf2a28d50875f70c329d7dbfafea807dc1fba1dc34c95d401f23f334ce63bfcf3f1b5b44739e5f0eded18d6b33f040a911376d173d757a9f0c1fa1798941bb0b36b2df9062790fa7f0166f2737eea907378341fb12dc0a77a',
  },
  {
    type: 'NSEC',
    text: 'host.example.com. A MX RRSIG NSEC TYPE1234',
    printed: 'host.example.com. A MX RRSIG NSEC TYPE1234',
    hex: '04686f7374076578616d706c6503636f6d000006400100000003041b000000000000000000000000000000000000000000000000000020',
  },
  {
    type: 'NSEC3',
    text: '1 1 12 aabbccdd 2vptu5timamqttgl4luu9kg21e0aor3s A RRSIG',
    printed: '1 1 12 AABBCCDD 2VPTU5TIMAMQTTGL4LUU9KG21E0AOR3S A RRSIG',
    hex: '0101000c04aabbccdd1417f3df17b2b2adaef615257de4d2020b80ac6c7c0006400000000002',
  },
  {
    type: 'NSEC3',
    text: '1 0 0 - 2VPTU5TIMAMQTTGL4LUU9KG21E0AOR3S',
    printed: '1 0 0 - 2VPTU5TIMAMQTTGL4LUU9KG21E0AOR3S',
    hex: '01000000001417f3df17b2b2adaef615257de4d2020b80ac6c7c',
  },
  {
    type: 'NSEC3PARAM',
    text: '1 0 12 AABBCCDD',
    printed: '1 0 12 AABBCCDD',
    hex: '0100000c04aabbccdd',
  },
  { type: 'NSEC3PARAM', text: '1 0 0 -', printed: '1 0 0 -', hex: '0100000000' },
  {
    type: 'TLSA',
    text: '3 1 1 d2abde240d7cd3ee6b4b28c54df034b97983a1d16e8a410e4561cb106618e971',
    printed: '3 1 1 D2ABDE240D7CD3EE6B4B28C54DF034B97983A1D16E8A410E4561CB106618E971',
    hex: '030101d2abde240d7cd3ee6b4b28c54df034b97983a1d16e8a410e4561cb106618e971',
  },
  {
    type: 'SMIMEA',
    text: '3 1 1 d2abde240d7cd3ee6b4b28c54df034b97983a1d16e8a410e4561cb106618e971',
    printed: '3 1 1 D2ABDE240D7CD3EE6B4B28C54DF034B97983A1D16E8A410E4561CB106618E971',
    hex: '030101d2abde240d7cd3ee6b4b28c54df034b97983a1d16e8a410e4561cb106618e971',
  },
  {
    type: 'SSHFP',
    text: '2 1 123456789abcdef67890123456789abcdef67890',
    printed: '2 1 123456789ABCDEF67890123456789ABCDEF67890',
    hex: '0201123456789abcdef67890123456789abcdef67890',
  },
  {
    type: 'DNAME',
    text: 'example.net.',
    printed: 'example.net.',
    hex: '076578616d706c65036e657400',
  },
  {
    type: 'LOC',
    text: '42 21 54 N 71 06 18 W -24m 30m',
    printed: '42 21 54.000 N 71 6 18.000 W -24.00m 30m 10000m 10m',
    hex: '0033161389172dd070be15f000988d20',
  },
  {
    type: 'LOC',
    text: '52 14 05 N 00 08 50 E 10m',
    printed: '52 14 5.000 N 0 8 50.000 E 10.00m 1m 10000m 10m',
    hex: '001216138b3556c88008165000989a68',
  },
  {
    type: 'LOC',
    text: '42 21 43.952 N 71 5 6.344 W -24m 1m 200m',
    printed: '42 21 43.952 N 71 5 6.344 W -24.00m 1m 200m 10m',
    hex: '001224138917069070bf2dd800988d20',
  },
  {
    type: 'LOC',
    text: '90 S 180 E -100000.00m 0.05m 90000000.00m 0m',
    printed: '90 0 0.000 S 180 0 0.000 E -100000.00m 0.05m 90000000m 0m',
    hex: '005099006cb02700a69fb20000000000',
  },
  {
    type: 'HINFO',
    text: '"DEC-2060" "TOPS20"',
    printed: '"DEC-2060" "TOPS20"',
    hex: '084445432d3230363006544f50533230',
  },
  {
    type: 'RP',
    text: 'mbox.example.org. txt.example.org.',
    printed: 'mbox.example.org. txt.example.org.',
    hex: '046d626f78076578616d706c65036f72670003747874076578616d706c65036f726700',
  },
  {
    type: 'URI',
    text: '10 1 "ftp://ftp1.example.com/public"',
    printed: '10 1 "ftp://ftp1.example.com/public"',
    hex: '000a00016674703a2f2f667470312e6578616d706c652e636f6d2f7075626c6963',
  },
  {
    type: 'ZONEMD',
    text: '2018031900 1 1 62e6cf51b02e54b9b5f967d547ce43136792901f9f88e637493daaf401c92c279dd10f0edb1c56f8080211f8480ee306',
    printed:
      '2018031900 1 1 62E6CF51B02E54B9B5F967D547CE43136792901F9F88E637493DAAF401C92C279DD10F0EDB1C56F8080211F8480EE306',
    hex: '7848b91c010162e6cf51b02e54b9b5f967d547ce43136792901f9f88e637493daaf401c92c279dd10f0edb1c56f8080211f8480ee306',
  },
  {
    type: 'AFSDB',
    text: '1 afs.example.org.',
    printed: '1 afs.example.org.',
    hex: '000103616673076578616d706c65036f726700',
  },
  {
    type: 'KX',
    text: '10 kx.example.org.',
    printed: '10 kx.example.org.',
    hex: '000a026b78076578616d706c65036f726700',
  },
  {
    type: 'RT',
    text: '10 relay.example.org.',
    printed: '10 relay.example.org.',
    hex: '000a0572656c6179076578616d706c65036f726700',
  },
  {
    type: 'CSYNC',
    text: '66 3 A NS AAAA',
    printed: '66 3 A NS AAAA',
    hex: '000000420003000460000008',
  },
  { type: 'OPENPGPKEY', text: 'mDMEAAAA', printed: 'mDMEAAAA', hex: '983304000000' },
  {
    type: 'MINFO',
    text: 'r.example.org. e.example.org.',
    printed: 'r.example.org. e.example.org.',
    hex: '0172076578616d706c65036f7267000165076578616d706c65036f726700',
  },
  {
    type: 'SVCB',
    text: '0 foo.example.com.',
    printed: '0 foo.example.com.',
    hex: '000003666f6f076578616d706c6503636f6d00',
  },
  { type: 'SVCB', text: '1 .', printed: '1 .', hex: '000100' },
  {
    type: 'SVCB',
    text: '16 foo.example.com. port=53',
    printed: '16 foo.example.com. port=53',
    hex: '001003666f6f076578616d706c6503636f6d00000300020035',
  },
  {
    type: 'SVCB',
    text: '1 foo.example.com. key667=hello',
    printed: '1 foo.example.com. key667="hello"',
    hex: '000103666f6f076578616d706c6503636f6d00029b000568656c6c6f',
  },
  {
    type: 'SVCB',
    text: '1 foo.example.com. key667="hello\\210qoo"',
    printed: '1 foo.example.com. key667="hello\\210qoo"',
    hex: '000103666f6f076578616d706c6503636f6d00029b000968656c6c6fd2716f6f',
  },
  {
    type: 'SVCB',
    text: '1 foo.example.com. ipv6hint="2001:db8::1,2001:db8::53:1"',
    printed: '1 foo.example.com. ipv6hint=2001:db8::1,2001:db8::53:1',
    hex: '000103666f6f076578616d706c6503636f6d000006002020010db800000000000000000000000120010db8000000000000000000530001',
  },
  {
    type: 'SVCB',
    text: '1 example.com. ipv6hint="2001:db8:122:344::192.0.2.33"',
    printed: '1 example.com. ipv6hint=2001:db8:122:344::c000:221',
    hex: '0001076578616d706c6503636f6d000006001020010db80122034400000000c0000221',
  },
  {
    type: 'SVCB',
    text: '16 foo.example.org. alpn=h2,h3-19 mandatory=ipv4hint,alpn ipv4hint=192.0.2.1',
    printed: '16 foo.example.org. mandatory=alpn,ipv4hint alpn="h2,h3-19" ipv4hint=192.0.2.1',
    hex: '001003666f6f076578616d706c65036f7267000000000400010004000100090268320568332d313900040004c0000201',
  },
  {
    type: 'SVCB',
    text: '16 foo.example.org. alpn="f\\\\\\\\oo\\\\,bar,h2"',
    printed: '16 foo.example.org. alpn="f\\\\\\\\oo\\\\,bar,h2"',
    hex: '001003666f6f076578616d706c65036f7267000001000c08665c6f6f2c626172026832',
  },
  {
    type: 'SVCB',
    text: '16 foo.example.org. alpn=f\\\\\\092oo\\092,bar,h2',
    printed: '16 foo.example.org. alpn="f\\\\\\\\oo\\\\,bar,h2"',
    hex: '001003666f6f076578616d706c65036f7267000001000c08665c6f6f2c626172026832',
  },
  {
    type: 'HTTPS',
    text: '1 . alpn="h2,h3" port=8443 ipv4hint=192.0.2.1,192.0.2.2 no-default-alpn',
    printed: '1 . alpn="h2,h3" no-default-alpn port=8443 ipv4hint=192.0.2.1,192.0.2.2',
    hex: '00010000010006026832026833000200000003000220fb00040008c0000201c0000202',
  },
  {
    type: 'SVCB',
    text: '1 dns.example. alpn=h2 dohpath=/dns-query{?dns}',
    printed: '1 dns.example. alpn="h2" dohpath="/dns-query{?dns}"',
    hex: '000103646e73076578616d706c650000010003026832000700102f646e732d71756572797b3f646e737d',
  },
]

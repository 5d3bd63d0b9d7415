import type { Ask } from '../support/transcript.ts'

/** One Corefile, and questions that show what its directives do. */
export interface Case {
  readonly name: string
  /** `{PORT}` and `{HTTP}` stand for ports. */
  readonly corefile: string
  readonly files?: Readonly<Record<string, string | Uint8Array>>
  readonly asks: readonly Ask[]
  /** Names for queries that are damaged at random. */
  readonly damaged?: readonly string[]
  /** Compare the metrics of {HTTP}. */
  readonly metrics?: boolean
  /** Paths of {HTTP} to compare. */
  readonly pages?: readonly string[]
  /** What must be seen, or the case shows nothing. */
  readonly shows?: readonly (readonly [RegExp, 'log' | 'metrics'])[]
}

export const COMMON = 'bind 127.0.0.1\n multisocket 2'

const LONG_TEXT = Array.from({ length: 12 }, (_, i) => `"${`part ${i} `.repeat(20)}"`).join(' ')

export const ZONE = `$ORIGIN example.org.
$TTL 1h
@ IN SOA ns1 hostmaster 7 2h 15m 2w 5m
 IN NS ns1
 IN NS ns2
 IN MX 10 mail
ns1 IN A 192.0.2.1
 IN AAAA 2001:db8::1
ns2 IN A 192.0.2.2
mail IN A 192.0.2.25
www 300 IN A 192.0.2.80
 300 IN A 192.0.2.81
 IN AAAA 2001:db8::80
three IN A 192.0.2.91
 IN A 192.0.2.92
 IN A 192.0.2.93
ftp IN CNAME www
loop IN CNAME loop2
loop2 IN CNAME loop
*.apps IN CNAME www
dname IN DNAME www
_sip._tcp IN SRV 0 5 5060 www
partner IN CNAME www.example.net.
gone IN CNAME no.example.net.
broken IN CNAME www.missing.example.
abroad IN CNAME www.elsewhere.invalid.
long IN TXT ${LONG_TEXT}
sub IN NS ns.sub
ns.sub IN A 192.0.2.53
`

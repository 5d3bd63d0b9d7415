import t from 'tap'
import { ask } from '../support/dig.ts'
import { needs } from '../support/peer.ts'
import { startServer } from '../support/server.ts'

const ZONE = `$ORIGIN example.org.
@     60 SOA ns host 1 7200 1800 86400 30
@     60 NS  ns
ns    60 A   192.0.2.53
four  60 A   192.0.2.1
both  60 A   192.0.2.2
both  60 AAAA 2001:db8::2
alias 60 CNAME four
`

t.test('dns64: dig and kdig get synthesized records', needs('dig', 'kdig'), async (t) => {
  const { port } = await startServer(t, {
    corefile: `example.org:{PORT} {
    bind 127.0.0.1
    dns64 {
        allow_ipv4
    }
    file db
}`,
    files: { db: ZONE },
  })
  for (const client of ['dig', 'kdig'] as const) {
    const four = await ask(client, port, ['four.example.org', 'AAAA'])
    t.strictSame(four.answer, ['four.example.org. 30 IN AAAA 64:ff9b::c000:201'])
    t.ok(four.flags.includes('aa'))
    const alias = await ask(client, port, ['alias.example.org', 'AAAA'])
    t.strictSame(alias.answer, [
      'alias.example.org. 60 IN CNAME four.example.org.',
      'four.example.org. 30 IN AAAA 64:ff9b::c000:201',
    ])
    const both = await ask(client, port, ['both.example.org', 'AAAA'])
    t.strictSame(both.answer, ['both.example.org. 60 IN AAAA 2001:db8::2'])
    const a = await ask(client, port, ['four.example.org', 'A'])
    t.strictSame(a.answer, ['four.example.org. 60 IN A 192.0.2.1'])
    t.equal((await ask(client, port, ['none.example.org', 'AAAA'])).status, 'NXDOMAIN')
  }
})

t.test('rewrite: dig and kdig see their own question', needs('dig', 'kdig'), async (t) => {
  const { port } = await startServer(t, {
    corefile: `example.org:{PORT} example.net:{PORT} {
    bind 127.0.0.1
    rewrite continue ttl suffix .example.net 5
    rewrite name suffix .example.net .example.org answer auto
    rewrite name regex ^ip-([a-z]+)\\.example\\.org\\.$ {1}.example.org answer auto
    rewrite continue cname exact four.example.org both.example.org
    rewrite continue type TXT A
    file db example.org
}`,
    files: { db: ZONE },
  })
  for (const client of ['dig', 'kdig'] as const) {
    const four = await ask(client, port, ['FOUR.example.net', 'A'])
    // kdig sends names in lower case.
    const name = client === 'dig' ? 'FOUR' : 'four'
    t.strictSame(four.answer, [`${name}.example.net. 5 IN A 192.0.2.1`])
    t.match(four.text, new RegExp(`^;; QUESTION SECTION:\\n;+ ?${name}\\.example\\.net\\.`, 'm'))
    const regex = await ask(client, port, ['ip-four.example.org', 'A'])
    t.strictSame(regex.answer, ['ip-four.example.org. 60 IN A 192.0.2.1'])
    const alias = await ask(client, port, ['alias.example.org', 'A'])
    t.strictSame(alias.answer, [
      'alias.example.org. 60 IN CNAME both.example.org.',
      'both.example.org. 60 IN A 192.0.2.2',
    ])
    const none = await ask(client, port, ['none.example.net', 'A'])
    t.equal(none.status, 'NXDOMAIN')
    t.match(none.authority, [/^example\.org\. 5 IN SOA/])
    const txt = await ask(client, port, ['four.example.org', 'TXT'])
    t.strictSame(txt.answer, ['four.example.org. 60 IN A 192.0.2.1'])
  }
})

t.test('template: dig and kdig get records of texts', needs('dig', 'kdig'), async (t) => {
  const { port } = await startServer(t, {
    corefile: `example.org:{PORT} in-addr.arpa:{PORT} invalid:{PORT} {
    bind 127.0.0.1
    template IN A example.org {
        match ^ip-(?P<a>[0-9]*)-(?P<b>[0-9]*)-(?P<c>[0-9]*)-(?P<d>[0-9]*)[.]example[.]org[.]$
        answer "{{ .Name }} 60 IN A {{ .Group.a }}.{{ .Group.b }}.{{ .Group.c }}.{{ .Group.d }}"
        fallthrough
    }
    template IN A to-four.example.org {
        answer "{{ .Name }} 60 IN CNAME four.example.org."
    }
    template IN PTR in-addr.arpa {
        match ^([0-9]*)[.]([0-9]*)[.]([0-9]*)[.]([0-9]*)[.]in-addr[.]arpa[.]$
        answer "{{ .Name }} 60 IN PTR ip-{{ .Group.4 }}-{{ .Group.3 }}-{{ .Group.2 }}-{{ .Group.1 }}.example.org."
    }
    template ANY ANY invalid {
        rcode NXDOMAIN
        authority "invalid. 60 {{ .Class }} SOA ns.invalid. hostmaster.invalid. (1 60 60 60 60)"
        ederror 21 "Blocked according to RFC2606"
    }
    file db example.org
}`,
    files: { db: ZONE },
  })
  for (const client of ['dig', 'kdig'] as const) {
    const made = await ask(client, port, ['ip-192-0-2-77.example.org', 'A'])
    t.strictSame(made.answer, ['ip-192-0-2-77.example.org. 60 IN A 192.0.2.77'])
    t.ok(made.flags.includes('aa'))
    const four = await ask(client, port, ['four.example.org', 'A'])
    t.strictSame(four.answer, ['four.example.org. 60 IN A 192.0.2.1'])
    const bad = await ask(client, port, ['ip-1-2-3-999.example.org', 'A'])
    t.equal(bad.status, 'SERVFAIL')
    const alias = await ask(client, port, ['to-four.example.org', 'A'])
    t.strictSame(alias.answer, [
      'four.example.org. 60 IN A 192.0.2.1',
      'to-four.example.org. 60 IN CNAME four.example.org.',
    ])
    const reverse = await ask(client, port, ['77.2.0.192.in-addr.arpa', 'PTR'])
    t.strictSame(reverse.answer, ['77.2.0.192.in-addr.arpa. 60 IN PTR ip-192-0-2-77.example.org.'])
    const invalid = await ask(client, port, ['x.invalid', 'MX', '+edns'])
    t.equal(invalid.status, 'NXDOMAIN')
    t.strictSame(invalid.authority, [
      'invalid. 60 IN SOA ns.invalid. hostmaster.invalid. 1 60 60 60 60',
    ])
    t.match(invalid.text, /Blocked according to RFC2606/)
  }
})
